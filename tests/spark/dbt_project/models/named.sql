{{ config(materialized='view') }}
select id, item from {{ ref('latest') }} where item is not null

{{ config(materialized='table', partition_by=['dt']) }}
select id, upper(item) as item, dt from {{ source('shop', 'orders') }}

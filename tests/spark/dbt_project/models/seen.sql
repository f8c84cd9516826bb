{{ config(materialized='incremental', incremental_strategy='append') }}
select count(*) as n from {{ ref('items') }}

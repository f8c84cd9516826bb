{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['dt']) }}
select count(*) as n, dt from {{ ref('items') }}
{% if is_incremental() %} where dt >= 'd2' {% endif %}
group by dt

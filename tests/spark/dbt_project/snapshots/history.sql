{% snapshot history %}
{{ config(unique_key='id', strategy='check', check_cols=['item']) }}
select id, item from {{ ref('latest') }}
{% endsnapshot %}

-- aggregates and grouping
SELECT dept, count(*), count(pay), sum(pay), avg(pay), min(name), max(hired) FROM emp GROUP BY dept
SELECT count(*), count(DISTINCT name), count(DISTINCT dept, ok), sum(DISTINCT pay) FROM emp
SELECT count(*), sum(pay), max(id) FROM emp WHERE false
SELECT dept FROM emp WHERE false GROUP BY dept
SELECT dept, ok, sum(pay) FROM emp GROUP BY dept, ok WITH ROLLUP
SELECT dept, ok, count(*) FROM emp GROUP BY CUBE (dept, ok)
SELECT dept, ok, grouping(dept), grouping_id(dept, ok), count(*) FROM emp GROUP BY GROUPING SETS ((dept), (ok), ())
SELECT dept, sum(pay) s FROM emp GROUP BY dept HAVING s > 200 OR dept IS NULL
SELECT dept + 1, count(*) FROM emp GROUP BY 1
SELECT dept, count(*) FILTER (WHERE ok), sum(pay) FILTER (WHERE pay > 100.5) FROM emp GROUP BY ALL
SELECT g, sum(c) FROM num GROUP BY g
SELECT sum(c) FROM num WHERE c > 4
SELECT try_sum(c), bool_and(ok), bool_or(ok), every(id > 0) FROM emp, num WHERE emp.id = num.a GROUP BY ok
SELECT min(score), max(score), sum(y), avg(y) FROM emp LEFT JOIN num ON a = id
SELECT score, count(*) FROM emp GROUP BY score
SELECT dept, max_by(name, pay), min_by(name, pay), any_value(id > 0) FROM emp GROUP BY dept
SELECT round(stddev_pop(pay), 6), round(var_samp(pay), 6), percentile(pay, 0.5) FROM emp
SELECT sort_array(collect_list(name)), sort_array(collect_set(dept)) FROM emp
SELECT listagg(name, ',') WITHIN GROUP (ORDER BY name DESC) FROM emp
SELECT name FROM emp GROUP BY dept
SELECT mode(a), approx_count_distinct(b), bit_and(a), bit_or(b), bit_xor(a) FROM num
-- joins
SELECT e.id, d.title FROM emp e JOIN dept d ON e.dept = d.id
SELECT e.id, d.title FROM emp e LEFT JOIN dept d ON e.dept = d.id AND d.floor = 2
SELECT e.id, d.title FROM emp e RIGHT JOIN dept d ON e.dept = d.id
SELECT e.id, d.id FROM emp e FULL JOIN dept d ON e.dept = d.id
SELECT e.id, d.id FROM emp e JOIN dept d ON e.dept <=> d.id
SELECT id FROM emp LEFT SEMI JOIN dept ON emp.dept = dept.id AND floor IS NOT NULL
SELECT id FROM emp LEFT ANTI JOIN dept ON emp.dept = dept.id
SELECT count(*) FROM emp CROSS JOIN dept
SELECT * FROM dept JOIN (SELECT dept AS id, count(*) n FROM emp GROUP BY dept) USING (id)
SELECT x.id, y.id FROM emp x JOIN emp y ON x.pay = y.pay AND x.id < y.id
SELECT id, a FROM emp NATURAL JOIN (SELECT a AS id, a FROM num)
SELECT e.id, d.title FROM emp e JOIN dept d ON e.dept >= d.id AND e.id < d.floor + 2
SELECT e.id, f.city FROM emp e JOIN LATERAL (SELECT e.info.city AS city WHERE e.ok) f
SELECT d.id, t.n FROM dept d LEFT JOIN LATERAL (SELECT count(*) n FROM emp WHERE dept = d.id) t ON n > 0
SELECT id FROM emp JOIN dept ON id = id
-- subqueries
SELECT id FROM emp WHERE dept IN (SELECT id FROM dept WHERE floor = 2)
SELECT id FROM emp WHERE dept NOT IN (SELECT id FROM dept WHERE id < 25)
SELECT id FROM emp WHERE dept NOT IN (SELECT id FROM dept)
SELECT id FROM emp WHERE dept NOT IN (SELECT id FROM dept WHERE false)
SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM dept WHERE dept.id = emp.dept AND floor > 1)
SELECT id FROM emp WHERE NOT EXISTS (SELECT 1 FROM dept WHERE dept.id = emp.dept)
SELECT id FROM emp WHERE pay > (SELECT avg(pay) FROM emp)
SELECT id FROM emp e WHERE pay = (SELECT max(pay) FROM emp f WHERE f.dept = e.dept)
SELECT id, (SELECT title FROM dept WHERE dept.id = emp.dept) FROM emp
SELECT id FROM emp WHERE pay > (SELECT pay FROM emp WHERE id = 99)
SELECT id FROM emp WHERE (dept, id) IN (SELECT 10, a FROM num)
SELECT id FROM emp WHERE ok OR dept IN (SELECT id FROM dept WHERE floor = 1)
SELECT id, dept IN (SELECT id FROM dept WHERE floor = 2) AS two FROM emp
SELECT id FROM emp WHERE dept = ANY (SELECT id FROM dept)
SELECT dept, count(*) FROM emp GROUP BY dept HAVING count(*) > (SELECT min(floor) FROM dept)
SELECT id FROM emp WHERE EXISTS (SELECT 1 FROM num WHERE a = emp.id AND b IN (SELECT floor FROM dept))
-- CTEs and sets
WITH r AS (SELECT * FROM emp WHERE ok) SELECT x.id, y.id FROM r x JOIN r y ON x.dept = y.dept
WITH a AS (SELECT 1 AS id), a2 AS (SELECT id + 1 AS id FROM a) SELECT name FROM emp JOIN a2 USING (id)
WITH emp AS (SELECT id FROM dept) SELECT count(*) FROM emp
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, name FROM n JOIN emp ON i = id
SELECT a, b FROM num UNION SELECT b, a FROM num
SELECT a FROM num UNION ALL SELECT CAST(id AS BIGINT) FROM dept
SELECT a, b FROM num INTERSECT SELECT b, a FROM num
SELECT a, b FROM num INTERSECT ALL SELECT a, b FROM num WHERE g = 'p'
SELECT a, b FROM num EXCEPT SELECT 1, 1
SELECT a, b FROM num EXCEPT ALL SELECT 1, 1
SELECT a FROM num MINUS SELECT id FROM emp WHERE id < 3
SELECT a, b FROM num UNION SELECT a FROM num
SELECT DISTINCT a, b FROM num
SELECT id, name FROM emp UNION BY NAME SELECT title AS name, id FROM dept
-- windows
SELECT id, row_number() OVER (PARTITION BY dept ORDER BY id) FROM emp
SELECT id, rank() OVER (ORDER BY pay), dense_rank() OVER (ORDER BY pay), ntile(3) OVER (ORDER BY id) FROM emp
SELECT id, lag(name) OVER (ORDER BY id), lead(pay, 2, 0) OVER (ORDER BY id DESC) FROM emp
SELECT id, sum(pay) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM emp
SELECT id, sum(pay) OVER (PARTITION BY ok ORDER BY pay RANGE BETWEEN 100 PRECEDING AND 100 FOLLOWING) FROM emp
SELECT id, first_value(name) IGNORE NULLS OVER w, nth_value(id, 2) OVER w FROM emp WINDOW w AS (ORDER BY id)
SELECT id, percent_rank() OVER (ORDER BY dept NULLS LAST), cume_dist() OVER (ORDER BY dept NULLS LAST) FROM emp
SELECT dept, sum(sum(pay)) OVER (ORDER BY dept) FROM emp GROUP BY dept
SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY dept ORDER BY pay DESC, id) AS n FROM emp) WHERE n = 1
SELECT id FROM emp WHERE row_number() OVER (ORDER BY id) = 1
-- order, limit, samples
SELECT id FROM emp ORDER BY dept NULLS LAST, pay DESC, id LIMIT 3
SELECT id, score FROM emp ORDER BY score DESC, id
SELECT id FROM emp ORDER BY id LIMIT 2 OFFSET 3
SELECT id FROM emp ORDER BY length(name), id
SELECT count(*) FROM emp TABLESAMPLE (100 PERCENT)
SELECT count(*) FROM emp TABLESAMPLE (0 ROWS)
SELECT id FROM emp TABLESAMPLE (101 PERCENT)
SELECT id FROM emp LIMIT -1
SELECT id FROM emp ORDER BY tags, id
SELECT props FROM emp ORDER BY props
-- pivot, lateral views, generators
SELECT * FROM (SELECT dept, ok, pay FROM emp) PIVOT (sum(pay) FOR ok IN (true AS yes, false AS no))
SELECT * FROM (SELECT a, b, c FROM num) UNPIVOT (v FOR k IN (a, b))
SELECT * FROM (SELECT a, b FROM num) UNPIVOT INCLUDE NULLS (v FOR k IN (a AS first, b AS second))
SELECT id, t FROM emp LATERAL VIEW explode(tags) e AS t
SELECT id, t FROM emp LATERAL VIEW OUTER explode(tags) e AS t
SELECT id, p, t FROM emp LATERAL VIEW posexplode(tags) e AS p, t WHERE t = 'x'
SELECT id, k, v FROM emp LATERAL VIEW explode(props) e AS k, v
SELECT id, inline(array(info)) FROM emp WHERE info IS NOT NULL
SELECT id, stack(2, name, 'n', CAST(pay AS STRING), 'p') FROM emp
SELECT * FROM emp, LATERAL explode(tags) AS t(tag) WHERE tag = 'y'
-- nested values
SELECT info.city, count(*) FROM emp GROUP BY info.city
SELECT id FROM emp WHERE info.zip > 1 AND info.city LIKE 'r%'
SELECT id, tags[0], element_at(tags, -1), size(tags), array_contains(tags, 'x') FROM emp WHERE size(tags) > 0
SELECT id, props['a'], map_keys(props), cardinality(props) FROM emp
SELECT id, transform(tags, t -> upper(t)), filter(tags, t -> t IS NOT NULL), exists(tags, t -> t = 'x') FROM emp
SELECT id, aggregate(map_values(props), 0, (s, v) -> s + coalesce(v, 0)) FROM emp
SELECT id, array_sort(array_union(tags, array('q'))), array_distinct(tags), arrays_zip(tags, tags) FROM emp
SELECT info.*, id FROM emp WHERE id < 3
SELECT info.nothing FROM emp
SELECT tags[9] FROM emp WHERE id = 1
SELECT try_element_at(tags, 9), get(tags, 9) FROM emp WHERE id = 1
SELECT to_json(info), from_json('{"city":"x"}', 'city STRING, zip INT') FROM emp
SELECT count(*) FROM emp WHERE info = named_struct('city', 'rome', 'zip', 1)
-- text
SELECT id FROM emp WHERE name LIKE 'a%'
SELECT id FROM emp WHERE name LIKE '%\\_\\%%'
SELECT id FROM emp WHERE name LIKE 'a/_%' ESCAPE '/'
SELECT id FROM emp WHERE name NOT LIKE '%n%'
SELECT id FROM emp WHERE name ILIKE 'ANN'
SELECT id FROM emp WHERE name RLIKE '^[a-b]'
SELECT id FROM emp WHERE name LIKE ANY ('a%', '%e')
SELECT id FROM emp WHERE name NOT LIKE ALL ('a%', 'b%')
SELECT upper(name), initcap(name), reverse(name), substr(name, 2), lpad(name, 5, '*'), trim('a' FROM name) FROM emp
SELECT concat(name, '-', dept), concat_ws('-', name, dept), split(name, 'n'), regexp_replace(name, '[aeiou]', '') FROM emp
SELECT id FROM emp WHERE name BETWEEN 'a' AND 'c'
SELECT id FROM emp WHERE name > 'Z' AND lower(name) IN ('ann', 'bob')
SELECT id, name = 'ann', name <=> NULL, name IS DISTINCT FROM 'ann' FROM emp
SELECT md5(name), hash(id, name), crc32(CAST(name AS BINARY)), hex(name), base64(CAST(name AS BINARY)) FROM emp
-- numbers
SELECT x + x, x * x, x / 3, x % 2, -x, round(x, 1), bround(x, 1), ceil(x), floor(x) FROM num WHERE a < 3
SELECT x * 1.5, x + 1, x / y, CAST(x AS INT), CAST(x AS DECIMAL(4, 1)) FROM num WHERE a = 1
SELECT CAST(x AS DECIMAL(4, 1)) FROM num
SELECT try_cast(x AS DECIMAL(4, 1)), try_add(c, 1), try_divide(a, b) FROM num
SELECT c + 1 FROM num
SELECT a / 0 FROM num
SELECT a div b, a % b, pmod(-a, 2), a & b, a | b, a ^ b, shiftleft(a, 2) FROM num
SELECT id FROM emp WHERE score = double('NaN')
SELECT id FROM emp WHERE score > 1
SELECT id FROM emp WHERE score = 0
SELECT id FROM emp WHERE pay = 100.5 OR pay = '200'
SELECT id FROM emp WHERE pay IN (100.50, 0.01, NULL)
SELECT id FROM emp WHERE pay NOT IN (100.50, 0.01, NULL)
SELECT id FROM emp WHERE id = 2147483648
SELECT a FROM num WHERE a > 1.5 AND c < 5.0
SELECT id FROM emp WHERE id = 'x'
SELECT greatest(a, b), least(a, b), nullif(a, b), coalesce(b, a, 0), nvl2(b, 'y', 'n'), if(a > b, a, b) FROM num
SELECT CASE WHEN a > 1 THEN 'big' WHEN a = 1 THEN g END, CASE a WHEN 2 THEN 'two' ELSE 'other' END FROM num
SELECT format_number(y, 2), conv(a, 10, 2), bin(a), sign(y), abs(y), width_bucket(a, 0, 4, 4) FROM num WHERE a < 4
-- times
SELECT id FROM emp WHERE hired > DATE'2020-01-01'
SELECT id FROM emp WHERE hired = '2020-02-29'
SELECT id, year(hired), month(hired), dayofweek(hired), weekofyear(hired), quarter(hired), last_day(hired) FROM emp
SELECT id, date_add(hired, 1), add_months(hired, 12), datediff(hired, DATE'2020-01-01'), trunc(hired, 'MM') FROM emp WHERE id < 5
SELECT id, hired + INTERVAL 1 MONTH, hired - DATE'2020-01-01', hired - INTERVAL '1' YEAR FROM emp WHERE id < 5
SELECT id, date_trunc('hour', seen), hour(seen), minute(seen), extract(SECOND FROM seen), CAST(seen AS DATE) FROM emp
SELECT id, date_format(seen, 'yyyy-MM-dd HH:mm:ss.SSS'), unix_micros(seen), CAST(seen AS STRING) FROM emp
SELECT id FROM emp WHERE seen >= TIMESTAMP'2024-03-10 03:00:00'
SELECT id FROM emp WHERE seen < '1970-01-01'
SELECT id, seen + INTERVAL 1 DAY, seen + INTERVAL 24 HOURS, to_utc_timestamp(seen, 'Asia/Tokyo') FROM emp
SELECT min(seen), max(seen), count(DISTINCT CAST(seen AS DATE)) FROM emp
SELECT window.start, count(*) FROM emp WHERE id <> 5 GROUP BY window(seen, '1 day') ORDER BY 1
SELECT months_between(seen, hired), next_day(hired, 'MON'), make_date(year(hired), 1, 1) FROM emp WHERE id < 4
SELECT to_date(name), to_timestamp('2020-01-01') FROM emp WHERE id = 1
-- conditions on partitions and on nothing
SELECT id FROM emp WHERE dept = 10 AND pay > 150
SELECT id FROM emp WHERE dept IS NULL OR dept > 20
SELECT id FROM emp WHERE NOT (dept = 10 OR ok)
SELECT id FROM emp WHERE dept IN (10, NULL)
SELECT id FROM emp WHERE dept <=> NULL AND id > 5
SELECT id FROM emp WHERE CAST(dept AS STRING) LIKE '1%'
SELECT DISTINCT dept FROM emp
SELECT max(dept), min(dept), count(dept) FROM emp
SELECT id FROM emp WHERE ok
SELECT id FROM emp WHERE ok IS NOT TRUE
SELECT id FROM emp WHERE (ok AND dept = 10) IS UNKNOWN
SELECT id FROM emp WHERE NULL
SELECT 1 FROM emp WHERE 1 = 1
SELECT id FROM emp WHERE rand() < 2 AND id < 3
SELECT nothing FROM emp
SELECT id, id FROM emp
FROM emp SELECT id WHERE dept = 20
FROM emp |> WHERE dept = 20 |> AGGREGATE count(*) AS n GROUP BY ok
VALUES (1), (2) INTERSECT SELECT id FROM emp
SELECT * EXCEPT (tags, info, props) FROM emp WHERE id = 1
SELECT t.`id` FROM emp AS t (id, b, c, d, e, f, g, h, i, j, k) WHERE c = 10
SELECT /*+ BROADCAST(dept) */ e.id FROM emp e JOIN dept ON e.dept = dept.id

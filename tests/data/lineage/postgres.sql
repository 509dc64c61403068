-- Routines of PostgreSQL in the manner of loads, ledgers and insurance, with what each reads and writes by itself,
-- written by hand. `dynamic` stands where SQL is put together at run time; tables that only such SQL names are not
-- listed. Temporary tables are not listed either.

-- == load_customer
-- reads: stg_customer, dim_customer
-- writes: dim_customer, etl_log
CREATE OR REPLACE PROCEDURE load_customer(p_batch text) LANGUAGE plpgsql AS $$
DECLARE v_rows bigint;
BEGIN
  UPDATE dim_customer d SET valid_to = now(), is_current = false
    FROM stg_customer s
   WHERE s.customer_no = d.customer_no AND d.is_current AND s.batch_no = p_batch AND (s.name, s.city) IS DISTINCT FROM (d.name, d.city);
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  INSERT INTO dim_customer (customer_no, name, city)
  SELECT s.customer_no, s.name, s.city FROM stg_customer s
   WHERE s.batch_no = p_batch AND NOT EXISTS (SELECT FROM dim_customer d WHERE d.customer_no = s.customer_no AND d.is_current);
  INSERT INTO etl_log (step, rows_done) VALUES ('customer', v_rows);
END $$;
-- == upsert_balance
-- reads: journal_line
-- writes: account_balance
CREATE FUNCTION upsert_balance(p_batch text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO account_balance AS b (batch_no, account, amount)
  SELECT batch_no, account, sum(debit - credit) FROM journal_line WHERE batch_no = p_batch GROUP BY batch_no, account
  ON CONFLICT (batch_no, account) DO UPDATE SET amount = excluded.amount, changed_at = now() WHERE b.amount <> excluded.amount;
$$;
-- == conflict_expression
-- reads: new_user
-- writes: app_user
CREATE FUNCTION conflict_expression() RETURNS void LANGUAGE sql AS $$
  INSERT INTO app_user (id, mail) OVERRIDING SYSTEM VALUE SELECT id, mail FROM new_user
  ON CONFLICT (lower(mail)) WHERE active DO NOTHING;
$$;
-- == merge_stock
-- reads: delivery
-- writes: stock
CREATE PROCEDURE merge_stock(p_day date) LANGUAGE plpgsql AS $$
BEGIN
  MERGE INTO stock AS t USING (SELECT item, sum(qty) AS qty FROM delivery WHERE day = p_day GROUP BY item) AS s ON t.item = s.item
  WHEN MATCHED AND s.qty = 0 THEN DELETE
  WHEN MATCHED THEN UPDATE SET qty = t.qty + s.qty
  WHEN NOT MATCHED THEN INSERT (item, qty) VALUES (s.item, s.qty);
END $$;
-- == moved_rows
-- reads: open_order
-- writes: open_order, done_order
CREATE FUNCTION moved_rows() RETURNS bigint LANGUAGE sql AS $$
  WITH gone AS (DELETE FROM open_order WHERE state = 'DONE' RETURNING *),
       kept AS (INSERT INTO done_order SELECT * FROM gone RETURNING id)
  SELECT count(*) FROM kept WHERE id NOT IN (SELECT id FROM open_order);
$$;
-- == cursor_loop
-- reads: loan
-- writes: schedule_line
CREATE PROCEDURE cursor_loop(p_day date) LANGUAGE plpgsql AS $$
DECLARE
  c CURSOR (k int) FOR SELECT id, amount, months FROM loan WHERE kind = k AND starts <= p_day;
  r record;
BEGIN
  DELETE FROM schedule_line WHERE day = p_day;
  OPEN c(1);
  LOOP
    FETCH c INTO r;
    EXIT WHEN NOT FOUND;
    FOR m IN 1..r.months LOOP
      INSERT INTO schedule_line (loan_id, day, month_no, due) VALUES (r.id, p_day, m, round(r.amount / r.months, 2));
    END LOOP;
  END LOOP;
  CLOSE c;
  FOR r IN c(2) LOOP
    NULL;
  END LOOP;
END $$;
-- == for_query
-- reads: branch, holiday
-- writes: branch_day
CREATE PROCEDURE for_query(p_day date) LANGUAGE plpgsql AS $$
DECLARE r branch%ROWTYPE; v_name branch.name%TYPE;
BEGIN
  <<days>>
  FOR r IN SELECT * FROM branch WHERE open ORDER BY code LOOP
    CONTINUE days WHEN EXISTS (SELECT 1 FROM holiday h WHERE h.branch = r.code AND h.day = p_day);
    v_name := upper(r.name);
    INSERT INTO branch_day (day, code, name) VALUES (p_day, r.code, v_name);
  END LOOP days;
END $$;
-- == exception_block
-- reads: policy
-- writes: premium, load_error
CREATE PROCEDURE exception_block(p_policy int) LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO premium (policy_id, amount) SELECT id, base * rate FROM policy WHERE id = p_policy;
  EXCEPTION
    WHEN unique_violation OR foreign_key_violation THEN
      INSERT INTO load_error (policy_id, message) VALUES (p_policy, SQLERRM);
    WHEN SQLSTATE '22012' THEN
      UPDATE load_error SET seen = seen + 1 WHERE policy_id = p_policy;
    WHEN OTHERS THEN
      RAISE WARNING 'policy % failed: %', p_policy, SQLERRM USING HINT = 'see load_error', ERRCODE = 'P0001';
  END;
END $$;
-- == dynamic_format
-- dynamic
-- writes: archive_log
CREATE PROCEDURE dynamic_format(p_table regclass, p_before date) LANGUAGE plpgsql AS $$
DECLARE v_sql text;
BEGIN
  v_sql := format('INSERT INTO %I_archive SELECT * FROM %s WHERE created < $1', p_table, p_table);
  EXECUTE v_sql USING p_before;
  INSERT INTO archive_log (name) VALUES (p_table::text);
END $$;
-- == dynamic_into
-- dynamic
-- reads: setting
CREATE FUNCTION dynamic_into(p text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE n bigint;
BEGIN
  EXECUTE 'SELECT count(*) FROM ' || quote_ident((SELECT value FROM setting WHERE name = p)) INTO STRICT n;
  RETURN n;
END $$;
-- == dynamic_return_query
-- dynamic
CREATE FUNCTION dynamic_return_query(p text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'SELECT * FROM ' || p;
END $$;
-- == dynamic_for
-- dynamic
-- writes: found_table
CREATE PROCEDURE dynamic_for() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN EXECUTE 'SELECT tablename FROM pg_tables' LOOP
    INSERT INTO found_table VALUES (r.tablename);
  END LOOP;
END $$;
-- == dynamic_cursor
-- dynamic
CREATE FUNCTION dynamic_cursor(p text) RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE c refcursor;
BEGIN
  OPEN c NO SCROLL FOR EXECUTE 'SELECT * FROM ' || p;
  RETURN c;
END $$;
-- == not_dynamic
-- reads: job
-- writes: job_log
CREATE PROCEDURE not_dynamic() LANGUAGE plpgsql AS $$
BEGIN
  -- EXECUTE 'DROP TABLE job';
  INSERT INTO job_log SELECT 'EXECUTE ''DELETE FROM x''', id FROM job WHERE note = $q$EXECUTE me$q$;
END $$;
-- == refcursor_static
-- reads: invoice
CREATE FUNCTION refcursor_static(INOUT c refcursor) LANGUAGE plpgsql AS $$
BEGIN
  OPEN c FOR SELECT * FROM invoice;
END $$;
-- == temporary_tables
-- reads: payment, open_item
-- writes: settlement
CREATE PROCEDURE temporary_tables(p_batch text) LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS pg_temp.tmp_pay;
  CREATE TEMP TABLE tmp_pay ON COMMIT DROP AS SELECT id, amount FROM payment WHERE batch_no = p_batch;
  CREATE TEMPORARY TABLE tmp_two (id int, amount numeric);
  INSERT INTO tmp_two SELECT * FROM tmp_pay;
  INSERT INTO settlement SELECT p_batch, o.id, t.amount FROM tmp_two t JOIN open_item o USING (amount);
END $$;
-- == create_as
-- reads: balance
-- writes: balance_new, balance, balance_old
CREATE PROCEDURE create_as() LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS balance_new;
  CREATE UNLOGGED TABLE balance_new AS SELECT * FROM balance;
  ALTER TABLE balance RENAME TO balance_old;
  ALTER TABLE balance_new RENAME TO balance;
END $$;
-- == truncate_many
-- writes: stage_a, stage_b, fin.stage_c
CREATE PROCEDURE truncate_many() LANGUAGE sql AS $$ TRUNCATE TABLE stage_a, ONLY stage_b, fin.stage_c RESTART IDENTITY CASCADE $$;
-- == partition_attach
-- writes: posting, posting_2024
CREATE PROCEDURE partition_attach() LANGUAGE plpgsql AS $$
BEGIN
  ALTER TABLE posting ATTACH PARTITION posting_2024 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
END $$;
-- == recursive_tree
-- reads: department, employee
-- writes: headcount
CREATE PROCEDURE recursive_tree(p_day date) LANGUAGE sql BEGIN ATOMIC
  DELETE FROM headcount WHERE day = p_day;
  INSERT INTO headcount (day, department, people)
  WITH RECURSIVE tree (id, root) AS (
    SELECT id, id FROM department WHERE parent_id IS NULL
    UNION ALL SELECT d.id, t.root FROM department d JOIN tree t ON d.parent_id = t.id)
  SELECT p_day, t.root, count(*) FROM tree t JOIN employee e ON e.department_id = t.id GROUP BY t.root;
END;
-- == return_expression
-- reads: fx
CREATE FUNCTION return_expression(p text) RETURNS numeric LANGUAGE sql STABLE RETURN (SELECT rate FROM fx WHERE currency = p ORDER BY day DESC LIMIT 1);
-- == return_query
-- reads: claim, policy
CREATE FUNCTION return_query(p_line text) RETURNS TABLE (policy_no text, total numeric) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT p.no, sum(c.amount) FROM policy p JOIN claim c ON c.policy_id = p.id WHERE p.line = p_line GROUP BY p.no;
  IF NOT FOUND THEN RETURN QUERY SELECT no, 0::numeric FROM policy WHERE line = p_line; END IF;
  RETURN;
END $$;
-- == return_next
-- reads: account
CREATE FUNCTION return_next() RETURNS SETOF account LANGUAGE plpgsql AS $$
DECLARE r account;
BEGIN
  FOR r IN SELECT * FROM account LOOP RETURN NEXT r; END LOOP;
END $$;
-- == perform_calls
-- calls: f_lock, f_log
-- reads: run
CREATE PROCEDURE perform_calls(p_run int) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM f_lock(p_run);
  PERFORM f_log(id, 'x') FROM run WHERE id = p_run;
  PERFORM pg_advisory_xact_lock(hashtext('run'));
END $$;
-- == call_chain
-- calls: sp_open, audit.sp_close
CREATE PROCEDURE call_chain(p_batch text, INOUT p_id int) LANGUAGE plpgsql AS $$
BEGIN
  CALL sp_open(p_batch, p_id);
  COMMIT;
  CALL audit.sp_close(p_id => p_id, p_note => 'done');
END $$;
-- == select_into_strict
-- reads: contract, product
-- writes: quote
CREATE FUNCTION select_into_strict(p_id int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE v_product int; v_base numeric; r record;
BEGIN
  SELECT product_id, base INTO STRICT v_product, v_base FROM contract WHERE id = p_id FOR UPDATE;
  SELECT * INTO r FROM product WHERE id = v_product;
  INSERT INTO quote (contract_id, price) VALUES (p_id, v_base * r.factor) RETURNING price INTO v_base;
  RETURN v_base;
END $$;
-- == assignments
-- reads: ledger, control
-- writes: control
CREATE PROCEDURE assignments(p_batch text) LANGUAGE plpgsql AS $$
DECLARE v_sum numeric := 0; v_list int[]; v_row control;
BEGIN
  v_sum := (SELECT coalesce(sum(amount), 0) FROM ledger WHERE batch_no = p_batch);
  v_list[1] = 5;
  v_list := ARRAY(SELECT id FROM control WHERE batch_no = p_batch);
  v_row.actual := v_sum;
  IF v_sum <> ALL (SELECT expected FROM control) THEN
    UPDATE control SET (actual, state) = (v_sum, 'BAD') WHERE id = ANY (v_list);
  END IF;
END $$;
-- == case_statement
-- reads: setting
-- writes: gl_a, gl_b, gl_c
CREATE PROCEDURE case_statement(p_kind text, p_amount numeric) LANGUAGE plpgsql AS $$
BEGIN
  CASE p_kind
    WHEN 'A', 'AA' THEN INSERT INTO gl_a (amount) VALUES (p_amount);
    WHEN 'B' THEN INSERT INTO gl_b (amount) VALUES (CASE WHEN p_amount > 0 THEN p_amount ELSE 0 END);
    ELSE
      CASE WHEN EXISTS (SELECT 1 FROM setting WHERE name = 'strict') THEN RAISE EXCEPTION 'strict';
           ELSE DELETE FROM gl_c WHERE amount = p_amount;
      END CASE;
  END CASE;
END $$;
-- == while_loop
-- reads: work_queue
-- writes: work_queue
CREATE PROCEDURE while_loop() LANGUAGE plpgsql AS $$
DECLARE v_id bigint;
BEGIN
  WHILE (SELECT count(*) FROM work_queue WHERE state = 'NEW') > 0 LOOP
    UPDATE work_queue SET state = 'TAKEN' WHERE id = (SELECT id FROM work_queue WHERE state = 'NEW' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id INTO v_id;
    EXIT WHEN v_id IS NULL;
  END LOOP;
END $$;
-- == foreach_array
-- writes: picked
CREATE PROCEDURE foreach_array(p int[]) LANGUAGE plpgsql AS $$
DECLARE x int;
BEGIN
  FOREACH x IN ARRAY p LOOP
    INSERT INTO picked (id) VALUES (x);
  END LOOP;
  FOR i IN REVERSE array_length(p, 1)..1 BY 2 LOOP
    DELETE FROM picked WHERE id = p[i];
  END LOOP;
END $$;
-- == delete_using
-- reads: purge_list
-- writes: claim
CREATE PROCEDURE delete_using() LANGUAGE sql AS $$
  DELETE FROM ONLY claim c USING purge_list p WHERE p.claim_id = c.id AND p.kind = 'HARD';
$$;
-- == update_from_joins
-- reads: invoice, adjustment
-- writes: invoice_line
CREATE PROCEDURE update_from_joins(p_run int) LANGUAGE sql AS $$
  UPDATE invoice_line l SET adjusted = true FROM adjustment a JOIN invoice i ON i.id = a.invoice_id
   WHERE l.invoice_id = i.id AND a.run_id = $1;
$$;
-- == where_current_of
-- reads: price
-- writes: price
CREATE PROCEDURE where_current_of() LANGUAGE plpgsql AS $$
DECLARE c CURSOR FOR SELECT * FROM price FOR UPDATE;
BEGIN
  FOR r IN c LOOP
    UPDATE price SET value = value * 1.1 WHERE CURRENT OF c;
  END LOOP;
END $$;
-- == trigger_audit
-- writes: salary_audit
CREATE FUNCTION trigger_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.amount IS DISTINCT FROM OLD.amount THEN
    INSERT INTO salary_audit (employee_id, before_amount, after_amount) VALUES (NEW.employee_id, OLD.amount, NEW.amount);
  END IF;
  NEW.changed_at := now();
  RETURN NEW;
END $$;
-- == trigger_transition
-- reads: new_rows
-- writes: totals
CREATE FUNCTION trigger_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO totals SELECT account, sum(amount) FROM new_rows GROUP BY account;
  RETURN NULL;
END $$;
-- == lateral_join
-- reads: account, movement
-- writes: last_movement
CREATE PROCEDURE lateral_join() LANGUAGE sql AS $$
  INSERT INTO last_movement SELECT a.id, m.amount FROM account a CROSS JOIN LATERAL (SELECT amount FROM movement m WHERE m.account_id = a.id ORDER BY id DESC LIMIT 1) m;
$$;
-- == distinct_on
-- reads: quote_line
-- writes: best_quote
CREATE PROCEDURE distinct_on() LANGUAGE sql AS $$
  INSERT INTO best_quote SELECT DISTINCT ON (item) item, price FROM quote_line ORDER BY item, price FETCH FIRST 10 ROWS ONLY;
$$;
-- == grouping_sets
-- reads: sale
-- writes: sale_cube
CREATE PROCEDURE grouping_sets() LANGUAGE sql AS $$
  INSERT INTO sale_cube SELECT region, product, sum(amount) FILTER (WHERE paid), percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)
    FROM sale GROUP BY GROUPING SETS ((region), (product), ());
$$;
-- == window_functions
-- reads: claim
-- writes: claim_rank
CREATE PROCEDURE window_functions() LANGUAGE sql AS $$
  INSERT INTO claim_rank SELECT id, row_number() OVER w, amount / sum(amount) OVER (PARTITION BY product ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    FROM claim WINDOW w AS (PARTITION BY product ORDER BY amount DESC NULLS LAST);
$$;
-- == from_keywords
-- reads: booking
-- writes: booking_part
CREATE PROCEDURE from_keywords() LANGUAGE sql AS $$
  INSERT INTO booking_part SELECT extract(year FROM starts), substring(code FROM 1 FOR 3), trim(BOTH 'x' FROM note), overlay(code placing 'y' from 2), position('a' IN note), starts AT TIME ZONE 'UTC'
    FROM booking WHERE starts > now() - INTERVAL '3 months';
$$;
-- == json_operators
-- reads: message
-- writes: message_part
CREATE PROCEDURE json_operators() LANGUAGE sql AS $$
  INSERT INTO message_part SELECT doc ->> 'k', doc #>> '{a,b}', (doc -> 'n')::int FROM message WHERE doc @> '{"a": 1}'::jsonb AND doc ? 'k';
$$;
-- == set_returning
-- calls: f_rows
-- reads: item
-- writes: item_row
CREATE PROCEDURE set_returning() LANGUAGE sql AS $$
  INSERT INTO item_row SELECT i.id, r.n, g FROM item i, f_rows(i.id) AS r(n), generate_series(1, 3) g, unnest(i.tags) WITH ORDINALITY t(tag, n);
$$;
-- == json_recordset
-- writes: event
CREATE FUNCTION json_recordset(p jsonb) RETURNS void LANGUAGE sql AS $$
  INSERT INTO event SELECT kind, amount FROM jsonb_to_recordset(p) AS x(kind text, amount numeric);
$$;
-- == values_list
-- writes: code
CREATE PROCEDURE values_list() LANGUAGE sql AS $$
  INSERT INTO code (id, name) SELECT v.id, v.name FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, name);
$$;
-- == schema_qualified
-- reads: core.account
-- writes: mart.account_day
CREATE PROCEDURE schema_qualified(p_day date) LANGUAGE sql SECURITY DEFINER SET search_path = mart, pg_temp AS $$
  INSERT INTO mart.account_day (day, account) SELECT p_day, a.no FROM core.account a;
$$;
-- == quoted_names
-- reads: Order Line
-- writes: Group
CREATE PROCEDURE quoted_names() LANGUAGE sql AS $$ INSERT INTO "Group" ("select") SELECT "key" FROM "Order Line" WHERE "where" = 'x FROM y' $$;
-- == comments_everywhere
-- reads: real_source
-- writes: real_target
CREATE PROCEDURE comments_everywhere() LANGUAGE plpgsql AS $body$
BEGIN
  -- DELETE FROM ghost_one;
  /* UPDATE ghost_two /* nested */ SET x = 1; */
  INSERT INTO real_target SELECT * /* FROM ghost_three */ FROM real_source;
END $body$;
-- == string_traps
-- reads: src
-- writes: dst
CREATE PROCEDURE string_traps() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO dst (a) SELECT E'it\'s FROM ghost' || 'x '' FROM y' || $q$ FROM z $q$ FROM src;
END $$;
-- == nested_blocks
-- reads: step_def
-- writes: step_run
CREATE PROCEDURE nested_blocks(p_run int) LANGUAGE plpgsql AS $$
<<outer_block>>
DECLARE v_name text := (SELECT name FROM step_def WHERE id = 1);
BEGIN
  DECLARE
    v_name text DEFAULT 'inner';
    k CONSTANT int NOT NULL := 3;
  BEGIN
    INSERT INTO step_run (run_id, name) VALUES (p_run, outer_block.v_name || v_name);
  END;
END $$;
-- == assert_and_raise
-- reads: limit_rule, usage
CREATE FUNCTION assert_and_raise(p numeric) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  ASSERT (SELECT count(*) FROM limit_rule) > 0, 'no limits';
  RAISE NOTICE 'used %', (SELECT sum(amount) FROM usage);
  RETURN p < 5;
END $$;
-- == elsif_chain
-- reads: a1, a2, a3
-- writes: b1, b2, b3
CREATE PROCEDURE elsif_chain() LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM a1) THEN DELETE FROM b1;
  ELSIF (SELECT max(x) FROM a2) > 1 THEN DELETE FROM b2;
  ELSEIF true AND 1 IN (SELECT x FROM a3) THEN DELETE FROM b3;
  ELSE NULL;
  END IF;
END $$;
-- == do_nothing
-- reads: incoming
-- writes: known
CREATE PROCEDURE do_nothing() LANGUAGE sql AS $$ INSERT INTO known SELECT * FROM incoming ON CONFLICT DO NOTHING $$;
-- == conflict_constraint
-- reads: incoming, known_name
-- writes: known
CREATE PROCEDURE conflict_constraint() LANGUAGE sql AS $$
  INSERT INTO known (id, name) SELECT id, name FROM incoming
  ON CONFLICT ON CONSTRAINT known_pkey DO UPDATE SET name = (SELECT n FROM known_name LIMIT 1);
$$;
-- == refresh_view
-- writes: sales_mv
CREATE PROCEDURE refresh_view() LANGUAGE plpgsql AS $$ BEGIN REFRESH MATERIALIZED VIEW CONCURRENTLY sales_mv; END $$;
-- == locks_and_notify
-- reads: queue
-- writes: queue
CREATE PROCEDURE locks_and_notify() LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE queue IN SHARE ROW EXCLUSIVE MODE;
  UPDATE queue SET n = n + 1 WHERE id IN (SELECT id FROM queue);
  NOTIFY changed, 'x';
  PERFORM pg_notify('changed', 'y');
  SET LOCAL work_mem = '64MB';
END $$;
-- == correlated_update
-- reads: tag
-- writes: item
CREATE PROCEDURE correlated_update() LANGUAGE sql AS $$
  UPDATE item SET tags = (SELECT string_agg(DISTINCT t.name, ';' ORDER BY t.name) FROM tag t WHERE t.item_id = item.id);
$$;
-- == set_operations
-- reads: src_a, src_b, src_c
-- writes: merged
CREATE PROCEDURE set_operations() LANGUAGE sql AS $$
  INSERT INTO merged (SELECT id FROM src_a EXCEPT SELECT id FROM src_b) UNION (SELECT id FROM src_c LIMIT 5);
$$;
-- == full_outer_join
-- reads: bank_line, ledger_line
-- writes: mismatch
CREATE PROCEDURE full_outer_join(p_batch text) LANGUAGE sql AS $$
  INSERT INTO mismatch SELECT coalesce(b.ref, l.ref) FROM bank_line b FULL JOIN ledger_line l USING (ref, batch_no) WHERE b.ref IS NULL OR l.ref IS NULL;
$$;
-- == table_sample
-- reads: big
-- writes: probe
CREATE PROCEDURE table_sample() LANGUAGE sql AS $$ INSERT INTO probe SELECT * FROM big TABLESAMPLE SYSTEM (1) $$;
-- == table_command
-- reads: src
-- writes: dst
CREATE PROCEDURE table_command() LANGUAGE sql AS $$ INSERT INTO dst TABLE src $$;
-- == boolean_tests
-- reads: account
-- writes: account_state
CREATE PROCEDURE boolean_tests() LANGUAGE sql AS $$
  INSERT INTO account_state SELECT id FROM account WHERE closed IS NOT TRUE AND NOT (a IS UNKNOWN) AND b BETWEEN SYMMETRIC 1 AND 5 AND name ILIKE '%x%' AND code SIMILAR TO '[a-z]+' AND code ~* 'x';
$$;
-- == array_any
-- reads: invoice
-- writes: reminder
CREATE PROCEDURE array_any(p int[]) LANGUAGE sql AS $$ INSERT INTO reminder SELECT id FROM invoice WHERE id = ANY ($1) AND state = ANY (ARRAY['OPEN', 'LATE']) AND tags && ARRAY['x'] $$;
-- == row_values
-- reads: pair, allowed
-- writes: pair_ok
CREATE PROCEDURE row_values() LANGUAGE sql AS $$ INSERT INTO pair_ok SELECT a, b FROM pair WHERE (a, b) IN (SELECT x, y FROM allowed) AND ROW(a, b) <> ROW(0, 0) $$;
-- == cte_materialized
-- reads: ledger, account
-- writes: report
CREATE PROCEDURE cte_materialized() LANGUAGE sql AS $$
  WITH sums AS MATERIALIZED (SELECT account_id, sum(amount) AS s FROM ledger GROUP BY 1), named AS NOT MATERIALIZED (SELECT a.name, s.s FROM sums s JOIN account a ON a.id = s.account_id)
  INSERT INTO report SELECT * FROM named;
$$;
-- == update_with_cte
-- reads: movement
-- writes: account
CREATE PROCEDURE update_with_cte() LANGUAGE sql AS $$
  WITH m AS (SELECT account_id, sum(amount) AS s FROM movement GROUP BY account_id)
  UPDATE account a SET balance = a.balance + m.s FROM m WHERE m.account_id = a.id;
$$;
-- == delete_with_cte
-- reads: old_run
-- writes: run_log
CREATE PROCEDURE delete_with_cte() LANGUAGE sql AS $$ WITH o AS (SELECT id FROM old_run) DELETE FROM run_log USING o WHERE run_log.run_id = o.id $$;
-- == cast_styles
-- reads: import_row
-- writes: typed_row
CREATE PROCEDURE cast_styles() LANGUAGE sql AS $$ INSERT INTO typed_row SELECT a::int, CAST(b AS numeric(18,2)), date '2024-01-01', interval '1 day', c::varchar(10)[] FROM import_row $$;
-- == interval_arithmetic
-- reads: policy
-- writes: upr
CREATE PROCEDURE interval_arithmetic(p_close date) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM upr WHERE close_date = p_close;
  INSERT INTO upr (close_date, policy_id, amount)
  SELECT p_close, id, round(premium * greatest(expires - p_close, 0) / nullif(expires - starts, 0), 2) FROM policy WHERE starts <= p_close AND daterange(starts, expires) @> p_close;
END $$;
-- == month_end_accrual
-- reads: accrual_rule, period
-- writes: journal_line
CREATE PROCEDURE month_end_accrual(p_batch text) LANGUAGE plpgsql AS $$
DECLARE r accrual_rule%rowtype; v_line int := 0;
BEGIN
  IF (SELECT status FROM period WHERE batch_no = p_batch) <> 'OPEN' THEN RAISE EXCEPTION USING MESSAGE = 'closed'; END IF;
  DELETE FROM journal_line WHERE batch_no = p_batch AND journal_code = 'ACCR';
  FOR r IN (SELECT * FROM accrual_rule ORDER BY rule_no) LOOP
    v_line := v_line + 1;
    INSERT INTO journal_line (batch_no, journal_code, line_no, amount) VALUES (p_batch, 'ACCR', v_line, r.amount), (p_batch, 'ACCR', v_line + 1000, -r.amount);
  END LOOP;
END $$;
-- == open_item_matching
-- reads: open_item, payment
-- writes: match_line, open_item, payment
CREATE PROCEDURE open_item_matching(p_batch text) LANGUAGE plpgsql AS $$
DECLARE rec record;
BEGIN
  FOR rec IN SELECT o.id AS item, p.id AS pay FROM open_item o JOIN payment p USING (reference, amount) WHERE o.state = 'OPEN' AND p.batch_no = p_batch FOR UPDATE OF o, p LOOP
    INSERT INTO match_line (batch_no, item_id, payment_id) VALUES (p_batch, rec.item, rec.pay);
    UPDATE open_item SET state = 'MATCHED' WHERE id = rec.item;
    UPDATE payment SET matched = true WHERE id = rec.pay;
  END LOOP;
END $$;
-- == sequence_use
-- writes: invoice
CREATE FUNCTION sequence_use() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('invoice_no');
BEGIN
  INSERT INTO invoice (no, day) VALUES (n, current_date);
  RETURN currval('invoice_no');
END $$;
-- == comma_joins
-- reads: a, b, c
-- writes: d
CREATE PROCEDURE comma_joins() LANGUAGE sql AS $$ INSERT INTO d SELECT a.x FROM a, b AS bb, (c JOIN b b2 ON b2.id = c.id) WHERE a.id = bb.id AND c.id = a.id $$;
-- == do_block
-- reads: raw
-- writes: cooked
CREATE PROCEDURE do_block() LANGUAGE plpgsql AS $outer$
BEGIN
  DO $inner$ BEGIN INSERT INTO cooked SELECT * FROM raw; END $inner$;
END $outer$;
-- == explain_and_analyze
-- writes: big
CREATE PROCEDURE analyze_after() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO big VALUES (1); ANALYZE big; END $$;
-- == copy_like
-- reads: template_table
-- writes: month_table
CREATE PROCEDURE copy_like() LANGUAGE plpgsql AS $$
BEGIN
  CREATE TABLE month_table (LIKE template_table INCLUDING ALL);
  INSERT INTO month_table SELECT * FROM template_table;
  CREATE INDEX ON month_table (id);
  COMMENT ON TABLE month_table IS 'x';
END $$;
-- == returning_into_loop
-- reads: ticket
-- writes: ticket, ticket_log
CREATE PROCEDURE returning_into_loop() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN UPDATE ticket SET state = 'DONE' WHERE id IN (SELECT id FROM ticket LIMIT 5) RETURNING id, state LOOP
    INSERT INTO ticket_log SELECT r.id, r.state;
  END LOOP;
END $$;
-- == dblink_call
-- dynamic
CREATE PROCEDURE dblink_call() LANGUAGE plpgsql AS $$ BEGIN PERFORM dblink_exec('srv', 'DELETE FROM remote_table'); END $$;

-- Routines of MySQL and MariaDB in the manner of loads, ledgers and insurance, with what each reads and writes by
-- itself, written by hand. `dynamic` stands where SQL is put together at run time; tables that only such SQL names are
-- not listed. Temporary tables are not listed either.

-- == load_customer_scd2
-- reads: stg_customer, dim_customer
-- writes: dim_customer, etl_log
CREATE PROCEDURE load_customer_scd2(IN p_batch VARCHAR(20))
BEGIN
  DECLARE v_rows INT DEFAULT 0;
  UPDATE dim_customer d JOIN stg_customer s ON s.customer_no = d.customer_no
     SET d.valid_to = CURRENT_DATE, d.is_current = 0
   WHERE d.is_current = 1 AND s.batch_no = p_batch AND (s.name <> d.name OR s.city <> d.city);
  SET v_rows = ROW_COUNT();
  INSERT INTO dim_customer (customer_no, name, city, valid_from, is_current)
  SELECT s.customer_no, s.name, s.city, CURRENT_DATE, 1
    FROM stg_customer s LEFT JOIN dim_customer d ON d.customer_no = s.customer_no AND d.is_current = 1
   WHERE s.batch_no = p_batch AND d.customer_no IS NULL;
  INSERT INTO etl_log (step, batch_no, rows_done) VALUES ('scd2', p_batch, v_rows + ROW_COUNT());
END
//
-- == load_fact_sales
-- reads: stg_sale, dim_customer, dim_product, dim_date
-- writes: fact_sale
CREATE PROCEDURE load_fact_sales(IN p_batch VARCHAR(20))
MODIFIES SQL DATA
SQL SECURITY DEFINER
COMMENT 'loads; FROM nowhere'
BEGIN
  DELETE FROM fact_sale WHERE batch_no = p_batch;
  INSERT INTO fact_sale (batch_no, customer_key, product_key, date_key, amount)
  SELECT p_batch, c.customer_key, p.product_key, d.date_key, SUM(s.quantity * s.price)
    FROM stg_sale s
    STRAIGHT_JOIN dim_customer c FORCE INDEX (ix_no) ON c.customer_no = s.customer_no
    JOIN dim_product p USE INDEX (ix_sku, ix_two) USING (sku)
    JOIN dim_date d ON d.day = DATE(s.sold_at)
   WHERE s.batch_no = p_batch
   GROUP BY c.customer_key, p.product_key, d.date_key WITH ROLLUP;
END
//
-- == cursor_allocate
-- reads: cost_pool, cost_driver
-- writes: allocation
CREATE PROCEDURE cursor_allocate(IN p_period CHAR(6))
BEGIN
  DECLARE done INT DEFAULT FALSE;
  DECLARE v_pool, v_dept INT;
  DECLARE v_amount DECIMAL(18,2);
  DECLARE c CURSOR FOR SELECT pool_id, amount FROM cost_pool WHERE period = p_period;
  DECLARE d CURSOR FOR SELECT dept_id FROM cost_driver WHERE pool_id = v_pool;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = TRUE;
  OPEN c;
  outer_loop: LOOP
    FETCH c INTO v_pool, v_amount;
    IF done THEN LEAVE outer_loop; END IF;
    OPEN d;
    inner_loop: LOOP
      FETCH d INTO v_dept;
      IF done THEN SET done = FALSE; LEAVE inner_loop; END IF;
      INSERT INTO allocation (period, pool_id, dept_id, amount) VALUES (p_period, v_pool, v_dept, v_amount / 4);
    END LOOP inner_loop;
    CLOSE d;
  END LOOP;
  CLOSE c;
END
//
-- == handler_block
-- reads: policy
-- writes: premium, load_error
CREATE PROCEDURE handler_block(IN p_policy INT)
BEGIN
  DECLARE v_sqlstate CHAR(5); DECLARE v_msg TEXT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION, SQLWARNING
  BEGIN
    GET DIAGNOSTICS CONDITION 1 v_sqlstate = RETURNED_SQLSTATE, v_msg = MESSAGE_TEXT;
    ROLLBACK;
    INSERT INTO load_error (policy_id, state, message) VALUES (p_policy, v_sqlstate, v_msg);
    RESIGNAL;
  END;
  START TRANSACTION;
  INSERT INTO premium (policy_id, amount) SELECT id, base * rate FROM policy WHERE id = p_policy;
  COMMIT;
END
//
-- == duplicate_handler
-- reads: agent
-- writes: agent, agent_audit
CREATE PROCEDURE duplicate_handler(IN p_code VARCHAR(10))
BEGIN
  DECLARE CONTINUE HANDLER FOR 1062, SQLSTATE '23000' UPDATE agent SET seen = seen + 1 WHERE code = p_code;
  INSERT INTO agent (code, seen) VALUES (p_code, 1);
  IF (SELECT seen FROM agent WHERE code = p_code) > 3 THEN
    INSERT INTO agent_audit SET code = p_code, noted = NOW();
  END IF;
END
//
-- == upsert_balance
-- reads: journal_line
-- writes: account_balance
CREATE PROCEDURE upsert_balance(IN p_batch VARCHAR(20))
INSERT INTO account_balance (batch_no, account, amount)
SELECT batch_no, account, SUM(debit - credit) FROM journal_line WHERE batch_no = p_batch GROUP BY batch_no, account
ON DUPLICATE KEY UPDATE amount = VALUES(amount), changed_at = NOW()
//
-- == replace_rate
-- reads: rate_feed
-- writes: rate
CREATE PROCEDURE replace_rate(IN p_day DATE)
BEGIN
  REPLACE INTO rate (day, currency, value) SELECT day, currency, value FROM rate_feed WHERE day = p_day;
END
//
-- == multi_update
-- reads: adjustment
-- writes: invoice, invoice_line
CREATE PROCEDURE multi_update(IN p_run INT)
BEGIN
  UPDATE invoice i, invoice_line l, adjustment a
     SET i.total = i.total + a.amount, l.adjusted = 1
   WHERE i.id = a.invoice_id AND l.invoice_id = i.id AND a.run_id = p_run;
END
//
-- == multi_delete
-- reads: purge_list
-- writes: claim, claim_note
CREATE PROCEDURE multi_delete()
BEGIN
  DELETE c, n FROM claim c LEFT JOIN claim_note n ON n.claim_id = c.id JOIN purge_list p ON p.claim_id = c.id;
  DELETE FROM c2 USING claim AS c2 JOIN purge_list AS p2 ON p2.claim_id = c2.id WHERE p2.kind = 'HARD';
END
//
-- == temporary_staging
-- reads: payment, open_item
-- writes: settlement
CREATE PROCEDURE temporary_staging(IN p_batch VARCHAR(20))
BEGIN
  DROP TEMPORARY TABLE IF EXISTS tmp_pay;
  CREATE TEMPORARY TABLE tmp_pay (id INT PRIMARY KEY, amount DECIMAL(18,2)) ENGINE=MEMORY
  SELECT id, amount FROM payment WHERE batch_no = p_batch;
  INSERT INTO settlement (batch_no, item_id, amount)
  SELECT p_batch, o.id, t.amount FROM tmp_pay t JOIN open_item o ON o.amount = t.amount;
  DROP TEMPORARY TABLE tmp_pay;
END
//
-- == temporary_like
-- reads: trade
-- writes: trade_error
CREATE PROCEDURE temporary_like()
BEGIN
  CREATE TEMPORARY TABLE tmp_trade LIKE trade;
  INSERT INTO tmp_trade SELECT * FROM trade WHERE checked = 0;
  INSERT INTO trade_error SELECT * FROM tmp_trade WHERE price <= 0;
END
//
-- == with_cte
-- reads: employee, department
-- writes: headcount
CREATE PROCEDURE with_cte(IN p_day DATE)
BEGIN
  DELETE FROM headcount WHERE day = p_day;
  INSERT INTO headcount (day, department, people)
  WITH RECURSIVE tree (id, root) AS (
    SELECT id, id FROM department WHERE parent_id IS NULL
    UNION ALL
    SELECT d.id, t.root FROM department d JOIN tree t ON d.parent_id = t.id),
  alive AS (SELECT id, department_id FROM employee WHERE hired <= p_day AND (left_on IS NULL OR left_on > p_day))
  SELECT p_day, t.root, COUNT(*) FROM tree t JOIN alive a ON a.department_id = t.id GROUP BY t.root;
END
//
-- == window_rank
-- reads: claim
-- writes: claim_rank
CREATE PROCEDURE window_rank(IN p_year INT)
BEGIN
  INSERT INTO claim_rank (claim_id, place, share)
  SELECT id, RANK() OVER w, amount / SUM(amount) OVER (PARTITION BY product)
    FROM claim WHERE YEAR(occurred_on) = p_year WINDOW w AS (PARTITION BY product ORDER BY amount DESC);
END
//
-- == dynamic_archive
-- dynamic
-- writes: archive_log
CREATE PROCEDURE dynamic_archive(IN p_table VARCHAR(64), IN p_before DATE)
BEGIN
  SET @sql = CONCAT('INSERT INTO ', p_table, '_archive SELECT * FROM ', p_table, ' WHERE created < ?');
  SET @before = p_before;
  PREPARE stmt FROM @sql;
  EXECUTE stmt USING @before;
  DEALLOCATE PREPARE stmt;
  INSERT INTO archive_log (name, done_at) VALUES (p_table, NOW());
END
//
-- == dynamic_immediate
-- dynamic
CREATE PROCEDURE dynamic_immediate(IN p_part VARCHAR(20))
BEGIN
  EXECUTE IMMEDIATE CONCAT('ALTER TABLE posting TRUNCATE PARTITION ', p_part);
END
//
-- == exchange_partition
-- writes: posting, posting_stage
CREATE PROCEDURE exchange_partition()
BEGIN
  ALTER TABLE posting EXCHANGE PARTITION p202407 WITH TABLE posting_stage WITHOUT VALIDATION;
  TRUNCATE TABLE posting_stage;
END
//
-- == rename_swap
-- reads: balance
-- writes: balance, balance_new, balance_old
CREATE PROCEDURE rename_swap()
BEGIN
  DROP TABLE IF EXISTS balance_new;
  CREATE TABLE balance_new AS SELECT * FROM balance;
  RENAME TABLE balance TO balance_old, balance_new TO balance;
  DROP TABLE balance_old;
END
//
-- == session_variables
-- reads: position
-- writes: position_rank
CREATE PROCEDURE session_variables()
BEGIN
  SET @rank := 0, @last := NULL;
  INSERT INTO position_rank (id, place)
  SELECT p.id, @rank := IF(@last = p.book, @rank + 1, 1) FROM position p, (SELECT @rank := 0) r ORDER BY p.book, p.value DESC;
  SELECT COUNT(*) INTO @n FROM position;
END
//
-- == select_into_many
-- reads: contract, product
-- writes: quote
CREATE PROCEDURE select_into_many(IN p_id INT, OUT p_price DECIMAL(18,2))
BEGIN
  DECLARE v_product INT; DECLARE v_base DECIMAL(18,2);
  SELECT c.product_id, c.base INTO v_product, v_base FROM contract c WHERE c.id = p_id LIMIT 1 FOR UPDATE;
  SELECT v_base * factor FROM product WHERE id = v_product INTO p_price;
  INSERT INTO quote (contract_id, price) VALUES (p_id, p_price);
END
//
-- == while_months
-- reads: loan
-- writes: schedule_line
CREATE PROCEDURE while_months(IN p_loan INT)
BEGIN
  DECLARE m INT DEFAULT 1;
  DECLARE n INT DEFAULT (SELECT months FROM loan WHERE id = p_loan);
  DELETE FROM schedule_line WHERE loan_id = p_loan;
  WHILE m <= n DO
    INSERT INTO schedule_line (loan_id, month_no, due) SELECT id, m, ROUND(amount / months, 2) FROM loan WHERE id = p_loan;
    SET m = m + 1;
  END WHILE;
END
//
-- == repeat_until
-- reads: work_queue
-- writes: work_queue
CREATE PROCEDURE repeat_until()
BEGIN
  DECLARE v INT;
  REPEAT
    UPDATE work_queue SET state = 'TAKEN' WHERE state = 'NEW' ORDER BY id LIMIT 100;
    SELECT COUNT(*) INTO v FROM work_queue WHERE state = 'NEW';
  UNTIL v = 0 OR (SELECT COUNT(*) FROM work_queue WHERE state = 'STOP') > 0 END REPEAT;
END
//
-- == case_statement
-- reads: setting
-- writes: gl_a, gl_b, gl_c
CREATE PROCEDURE case_statement(IN p_kind CHAR(1), IN p_amount DECIMAL(18,2))
BEGIN
  CASE p_kind
    WHEN 'A' THEN INSERT INTO gl_a (amount) VALUES (p_amount);
    WHEN 'B' THEN INSERT INTO gl_b (amount) VALUES (CASE WHEN p_amount > 0 THEN p_amount ELSE 0 END);
    ELSE
      CASE WHEN EXISTS (SELECT 1 FROM setting WHERE name = 'strict') THEN SIGNAL SQLSTATE '45000';
           ELSE DELETE FROM gl_c WHERE amount = p_amount;
      END CASE;
  END CASE;
END
//
-- == call_chain
-- calls: sp_open, sp_close
-- reads: run
CREATE PROCEDURE call_chain(IN p_batch VARCHAR(20))
BEGIN
  DECLARE v_id INT;
  CALL sp_open(p_batch, v_id);
  IF NOT EXISTS (SELECT * FROM run WHERE id = v_id) THEN
    CALL audit.sp_close(v_id, (SELECT MAX(id) FROM run));
  END IF;
END
//
-- == function_rate
-- reads: fx
CREATE FUNCTION function_rate(p_currency CHAR(3), p_day DATE) RETURNS DECIMAL(18,8)
READS SQL DATA
BEGIN
  DECLARE v DECIMAL(18,8);
  SELECT rate INTO v FROM fx WHERE currency = p_currency AND day <= p_day ORDER BY day DESC LIMIT 1;
  RETURN COALESCE(v, 1);
END
//
-- == function_return_query
-- reads: branch
CREATE FUNCTION function_return_query(p_code VARCHAR(4)) RETURNS VARCHAR(60) CHARSET utf8mb4 DETERMINISTIC
RETURN (SELECT name FROM branch WHERE code = p_code)
//
-- == function_calls
-- calls: function_rate
-- reads: deposit
-- writes: interest
CREATE PROCEDURE function_calls(IN p_day DATE)
INSERT INTO interest (deposit_id, amount) SELECT id, amount * function_rate(currency, p_day) FROM deposit
//
-- == derived_and_exists
-- reads: policy, claim, reserve
-- writes: reserve_check
CREATE PROCEDURE derived_and_exists()
BEGIN
  INSERT INTO reserve_check (policy_id, gap)
  SELECT p.id, x.total - r.amount
    FROM policy p
    JOIN (SELECT policy_id, SUM(amount) AS total FROM claim GROUP BY policy_id HAVING SUM(amount) > 0) x ON x.policy_id = p.id
    LEFT JOIN reserve r ON r.policy_id = p.id
   WHERE NOT EXISTS (SELECT 1 FROM claim c2 WHERE c2.policy_id = p.id AND c2.state = 'OPEN');
END
//
-- == union_all_sources
-- reads: src_a, src_b, src_c
-- writes: merged
CREATE PROCEDURE union_all_sources()
BEGIN
  TRUNCATE merged;
  INSERT INTO merged (SELECT id, 'A' FROM src_a) UNION ALL (SELECT id, 'B' FROM src_b ORDER BY id LIMIT 10) UNION DISTINCT SELECT id, 'C' FROM src_c;
END
//
-- == lock_tables
-- reads: counter
-- writes: counter
CREATE PROCEDURE next_number(OUT p_no BIGINT)
BEGIN
  UPDATE counter SET value = LAST_INSERT_ID(value + 1) WHERE name = 'invoice';
  SELECT value INTO p_no FROM counter WHERE name = 'invoice' LOCK IN SHARE MODE;
END
//
-- == json_rows
-- writes: event
CREATE PROCEDURE json_rows(IN p_doc JSON)
BEGIN
  INSERT INTO event (kind, amount)
  SELECT j.kind, j.amount FROM JSON_TABLE(p_doc, '$[*]' COLUMNS (kind VARCHAR(20) PATH '$.k', amount DECIMAL(18,2) PATH '$.a')) AS j;
END
//
-- == interval_units
-- reads: booking
-- writes: booking_window
CREATE PROCEDURE interval_units()
BEGIN
  INSERT INTO booking_window (id, ends, months)
  SELECT id, DATE_ADD(starts, INTERVAL '1-2' YEAR_MONTH), TIMESTAMPDIFF(MONTH, starts, NOW()) FROM booking
   WHERE EXTRACT(YEAR_MONTH FROM starts) = 202407 AND starts > NOW() - INTERVAL 3 MONTH;
END
//
-- == group_concat
-- reads: tag, item
-- writes: item
CREATE PROCEDURE group_concat_tags()
BEGIN
  UPDATE item i SET i.tags = (SELECT GROUP_CONCAT(DISTINCT t.name ORDER BY t.name SEPARATOR ';') FROM tag t WHERE t.item_id = i.id);
  SELECT SQL_CALC_FOUND_ROWS id FROM item LIMIT 10;
END
//
-- == other_schema
-- reads: core.account
-- writes: mart.account_day
CREATE PROCEDURE other_schema(IN p_day DATE)
BEGIN
  INSERT INTO mart.account_day (day, account, balance) SELECT p_day, a.no, a.balance FROM core.account a;
END
//
-- == quoted_names
-- reads: order line
-- writes: Group
CREATE PROCEDURE quoted_names()
BEGIN
  INSERT INTO `Group` (`select`, `from`) SELECT `key`, "a FROM b" FROM `order line` WHERE `where` = 'x -- FROM y';
END
//
-- == comments_everywhere
-- reads: real_source
-- writes: real_target
CREATE PROCEDURE comments_everywhere()
BEGIN
  -- DELETE FROM ghost_one;
  # INSERT INTO ghost_two VALUES (1);
  /* UPDATE ghost_three SET x = 1; */
  INSERT INTO real_target SELECT * /* FROM ghost_four */ FROM real_source; -- trailing
END
//
-- == if_function_and_statement
-- reads: param
-- writes: result
CREATE PROCEDURE if_function_and_statement(IN p INT)
BEGIN
  IF(p > 0) THEN
    INSERT INTO result (v) VALUES (IF(p > 5, 'big', 'small'));
  ELSEIF p = 0 THEN
    INSERT INTO result (v) SELECT IFNULL(MAX(v), 0) FROM param;
  ELSE
    UPDATE result SET v = CASE p WHEN -1 THEN 'minus' ELSE 'less' END WHERE v IS NULL;
  END IF;
END
//
-- == insert_ignore
-- reads: new_member
-- writes: member, member_log
CREATE PROCEDURE insert_ignore()
BEGIN
  INSERT IGNORE INTO member (id, name) SELECT id, name FROM new_member;
  INSERT LOW_PRIORITY INTO member_log VALUES (NOW(), ROW_COUNT()), (NOW(), 0);
  DELETE QUICK FROM member WHERE name = '';
END
//
-- == trigger_audit
-- writes: salary_audit
CREATE TRIGGER trigger_audit AFTER UPDATE ON salary FOR EACH ROW
BEGIN
  IF NEW.amount <> OLD.amount THEN
    INSERT INTO salary_audit (employee_id, before_amount, after_amount) VALUES (NEW.employee_id, OLD.amount, NEW.amount);
  END IF;
END
//
-- == trigger_fill
-- reads: branch_default
CREATE TRIGGER trigger_fill BEFORE INSERT ON customer FOR EACH ROW
SET NEW.branch = COALESCE(NEW.branch, (SELECT code FROM branch_default LIMIT 1)), NEW.created = NOW()
//
-- == subquery_in_set
-- reads: ledger, control
-- writes: control
CREATE PROCEDURE subquery_in_set(IN p_batch VARCHAR(20))
BEGIN
  DECLARE v_sum DECIMAL(18,2);
  SET v_sum = (SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE batch_no = p_batch);
  IF v_sum <> (SELECT expected FROM control WHERE batch_no = p_batch) THEN
    UPDATE control SET actual = v_sum, state = 'BAD' WHERE batch_no = p_batch;
  END IF;
END
//
-- == do_statement
-- calls: f_touch
-- reads: heartbeat
CREATE PROCEDURE do_statement()
BEGIN
  DO f_touch((SELECT MAX(id) FROM heartbeat)), SLEEP(0);
END
//
-- == load_only_selects
-- reads: country, city
CREATE PROCEDURE load_only_selects(IN p VARCHAR(2))
BEGIN
  SELECT SQL_NO_CACHE c.name, ci.name FROM country c NATURAL JOIN city ci WHERE c.code = p;
  (SELECT 1 FROM country) UNION (SELECT 2 FROM city);
END
//
-- == insert_select_same
-- reads: slot
-- writes: slot
CREATE PROCEDURE insert_select_same(IN p_from DATE, IN p_to DATE)
INSERT INTO slot (day, hour, free) SELECT p_to, hour, 1 FROM slot WHERE day = p_from
//
-- == nested_blocks
-- reads: step_def
-- writes: step_run, step_fail
CREATE PROCEDURE nested_blocks(IN p_run INT)
main: BEGIN
  DECLARE v_name VARCHAR(50);
  first: BEGIN
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO step_fail (run_id) VALUES (p_run); END;
    SELECT name INTO v_name FROM step_def WHERE id = 1;
    IF v_name IS NULL THEN LEAVE main; END IF;
    INSERT INTO step_run (run_id, name) VALUES (p_run, v_name);
  END first;
END main
//
-- == partition_selection
-- reads: posting
-- writes: posting_copy
CREATE PROCEDURE partition_selection()
INSERT INTO posting_copy PARTITION (p1) SELECT * FROM posting PARTITION (p1, p2) AS p WHERE p.id > 0
//
-- == update_with_derived
-- reads: payment
-- writes: customer
CREATE PROCEDURE update_with_derived()
BEGIN
  UPDATE customer c
  INNER JOIN (SELECT customer_id, MAX(paid_on) AS last_paid FROM payment GROUP BY customer_id) p ON p.customer_id = c.id
  SET c.last_paid = p.last_paid, c.state = 'PAYING'
  WHERE c.state <> 'CLOSED';
END
//
-- == delete_with_subquery
-- reads: closed_account
-- writes: statement_line, statement_head
CREATE PROCEDURE delete_with_subquery()
BEGIN
  DELETE FROM statement_line WHERE account_id IN (SELECT id FROM closed_account WHERE closed_on < CURDATE() - INTERVAL 7 YEAR) LIMIT 10000;
  DELETE statement_head FROM statement_head JOIN closed_account ON closed_account.id = statement_head.account_id;
END
//
-- == savepoints
-- reads: batch_item
-- writes: batch_item, batch_fail
CREATE PROCEDURE savepoints(IN p_batch INT)
BEGIN
  START TRANSACTION;
  SAVEPOINT a;
  UPDATE batch_item SET state = 'RUN' WHERE batch_id = p_batch;
  IF (SELECT COUNT(*) FROM batch_item WHERE batch_id = p_batch AND amount < 0) > 0 THEN
    ROLLBACK TO SAVEPOINT a;
    INSERT INTO batch_fail (batch_id) VALUES (p_batch);
  END IF;
  RELEASE SAVEPOINT a;
  COMMIT;
END
//
-- == signal_with_select
-- reads: limit_rule
CREATE PROCEDURE signal_with_select(IN p DECIMAL(18,2))
BEGIN
  DECLARE msg VARCHAR(128);
  IF p > (SELECT max_amount FROM limit_rule WHERE code = 'TX') THEN
    SET msg = CONCAT('over ', p);
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = msg, MYSQL_ERRNO = 30001;
  END IF;
END
//
-- == row_constructor
-- reads: pair, allowed
-- writes: pair_ok
CREATE PROCEDURE row_constructor()
INSERT INTO pair_ok SELECT a, b FROM pair WHERE (a, b) IN (SELECT x, y FROM allowed) AND (a, b) <> (0, 0)
//
-- == full_text
-- reads: document
-- writes: hit
CREATE PROCEDURE full_text(IN p VARCHAR(100))
INSERT INTO hit (id, score) SELECT id, MATCH(title, body) AGAINST (p IN NATURAL LANGUAGE MODE) FROM document
//
-- == regexp_and_binary
-- reads: raw_line
-- writes: raw_bad
CREATE PROCEDURE regexp_and_binary()
INSERT INTO raw_bad SELECT * FROM raw_line WHERE line REGEXP '^[0-9]+$' AND BINARY code = 'x' AND note NOT LIKE '%\_%' AND NOT (kind <=> 'a')
//
-- == cast_convert
-- reads: import_row
-- writes: typed_row
CREATE PROCEDURE cast_convert()
INSERT INTO typed_row (a, b, c) SELECT CAST(a AS UNSIGNED), CONVERT(b USING utf8mb4), CONVERT(c, DECIMAL(18,2)) FROM import_row WHERE d COLLATE utf8mb4_bin = 'x'
//
-- == iterate_leave
-- reads: month_list
-- writes: accrual
CREATE PROCEDURE iterate_leave()
BEGIN
  DECLARE i INT DEFAULT 0;
  l: LOOP
    SET i = i + 1;
    IF i > (SELECT COUNT(*) FROM month_list) THEN LEAVE l; END IF;
    IF i MOD 2 = 0 THEN ITERATE l; END IF;
    INSERT INTO accrual (month_no) VALUES (i);
  END LOOP l;
END
//
-- == prepared_static
-- dynamic
-- reads: base
CREATE PROCEDURE prepared_static()
BEGIN
  SELECT COUNT(*) INTO @c FROM base;
  PREPARE s FROM 'DELETE FROM swept';
  EXECUTE s;
END
//
-- == create_table_like
-- reads: template_table
-- writes: month_table
CREATE PROCEDURE create_table_like()
BEGIN
  CREATE TABLE IF NOT EXISTS month_table LIKE template_table;
  INSERT INTO month_table SELECT * FROM template_table;
END
//
-- == outfile
-- reads: report_line
CREATE PROCEDURE outfile()
SELECT a, b FROM report_line INTO OUTFILE '/tmp/x.csv' FIELDS TERMINATED BY ','
//
-- == bare_end_words
-- reads: job_state
-- writes: job_state
CREATE PROCEDURE bare_end_words(IN p INT)
BEGIN
  UPDATE job_state SET ended = 1, `end` = NOW() WHERE id = p;
  SELECT CASE WHEN ended = 1 THEN 'end' ELSE 'open' END AS `case` FROM job_state WHERE id = p;
END
//
-- == limit_variables
-- reads: inbox
-- writes: outbox
CREATE PROCEDURE limit_variables(IN p_n INT, IN p_skip INT)
INSERT INTO outbox SELECT * FROM inbox ORDER BY id LIMIT p_skip, p_n
//
-- == lateral_join
-- reads: account, movement
-- writes: last_movement
CREATE PROCEDURE lateral_join()
INSERT INTO last_movement SELECT a.id, m.amount FROM account a, LATERAL (SELECT amount FROM movement m WHERE m.account_id = a.id ORDER BY id DESC LIMIT 1) m
//
-- == values_statement
-- writes: code
CREATE PROCEDURE values_statement()
BEGIN
  INSERT INTO code (id, name) VALUES ROW(1, 'a'), ROW(2, 'b');
  INSERT INTO code (id, name) VALUE (3, 'c') AS n ON DUPLICATE KEY UPDATE name = n.name;
END
//
-- == replace_set
-- writes: flag
CREATE PROCEDURE replace_set() REPLACE flag SET name = 'x', value = 1
//
-- == on_duplicate_subquery
-- reads: stock_in
-- writes: stock
CREATE PROCEDURE on_duplicate_subquery(IN p_item INT)
INSERT INTO stock (item, qty) VALUES (p_item, 0) ON DUPLICATE KEY UPDATE qty = qty + (SELECT SUM(q) FROM stock_in WHERE item = p_item)
//
-- == rollup_report
-- reads: ledger, account
-- writes: report
CREATE PROCEDURE rollup_report()
BEGIN
  INSERT INTO report (label, amount)
  SELECT COALESCE(a.kind, 'TOTAL'), SUM(l.amount) FROM ledger l RIGHT OUTER JOIN account a ON a.id = l.account_id GROUP BY a.kind WITH ROLLUP;
END
//
-- == cross_update_self
-- reads: price
-- writes: price
CREATE PROCEDURE cross_update_self()
UPDATE price p1 JOIN price p2 ON p2.item = p1.item AND p2.version = p1.version - 1 SET p1.delta = p1.value - p2.value
//
-- == get_lock
-- reads: sequence_no
-- writes: sequence_no
CREATE PROCEDURE get_lock_sequence()
BEGIN
  IF GET_LOCK('seq', 10) = 1 THEN
    UPDATE sequence_no SET n = n + 1;
    SELECT n FROM sequence_no;
    DO RELEASE_LOCK('seq');
  END IF;
END
//
-- == maria_for_loop
-- reads: branch
-- writes: branch_day
CREATE PROCEDURE maria_for_loop(IN p_day DATE)
BEGIN
  FOR rec IN (SELECT code, name FROM branch WHERE open = 1) DO
    INSERT INTO branch_day (day, code) VALUES (p_day, rec.code);
  END FOR;
  FOR i IN 1 .. 3 DO
    DELETE FROM branch_day WHERE day = p_day - INTERVAL i YEAR;
  END FOR;
END
//
-- == maria_returning
-- reads: ticket
-- writes: ticket
CREATE PROCEDURE maria_returning()
BEGIN
  DELETE FROM ticket WHERE state = 'DONE' RETURNING id;
  INSERT INTO ticket (state) SELECT state FROM ticket WHERE id = 1;
END
//
-- == analyze_table
-- writes: big
CREATE PROCEDURE analyze_table()
BEGIN
  INSERT INTO big VALUES (1);
  ANALYZE TABLE big;
  OPTIMIZE TABLE big;
END
//
-- == alter_columns
-- writes: wide
CREATE PROCEDURE alter_columns()
BEGIN
  ALTER TABLE wide ADD COLUMN IF NOT EXISTS extra INT DEFAULT 0, DROP INDEX ix_old;
  CREATE INDEX ix_new ON wide (extra);
END
//
-- == three_level_case
-- reads: risk
-- writes: risk_class
CREATE PROCEDURE three_level_case()
INSERT INTO risk_class (id, class)
SELECT id, CASE WHEN age < 25 THEN CASE WHEN sex = 'M' THEN CASE WHEN km > 20000 THEN 'A3' ELSE 'A2' END ELSE 'A1' END ELSE 'B' END FROM risk
//
-- == string_traps
-- reads: src
-- writes: dst
CREATE PROCEDURE string_traps()
INSERT INTO dst (a) SELECT CONCAT('it''s \'DELETE FROM ghost\'', "x"" FROM y", 'a' 'b') FROM src
//
-- == open_item_matching
-- reads: open_item, payment
-- writes: match_line, open_item, payment
CREATE PROCEDURE open_item_matching(IN p_batch VARCHAR(20))
BEGIN
  DECLARE fin BOOLEAN DEFAULT FALSE;
  DECLARE v_item, v_pay BIGINT;
  DECLARE cur CURSOR FOR
    SELECT o.id, p.id FROM open_item o INNER JOIN payment p ON p.reference = o.reference AND p.amount = o.amount
     WHERE o.state = 'OPEN' AND p.batch_no = p_batch FOR UPDATE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET fin := TRUE;
  OPEN cur;
  REPEAT
    FETCH cur INTO v_item, v_pay;
    IF NOT fin THEN
      INSERT INTO match_line (batch_no, item_id, payment_id) VALUES (p_batch, v_item, v_pay);
      UPDATE open_item SET state = 'MATCHED' WHERE id = v_item;
      UPDATE payment SET matched = TRUE WHERE id = v_pay;
    END IF;
  UNTIL fin END REPEAT;
  CLOSE cur;
END
//
-- == unearned_premium
-- reads: policy, product, calendar_day
-- writes: upr
CREATE PROCEDURE unearned_premium(IN p_close DATE)
BEGIN
  DELETE FROM upr WHERE close_date = p_close;
  INSERT INTO upr (close_date, policy_id, line, amount)
  SELECT p_close, p.id, pr.line,
         ROUND(p.premium * GREATEST(DATEDIFF(p.expires, p_close), 0) / NULLIF(DATEDIFF(p.expires, p.starts), 0), 2)
    FROM policy AS p JOIN product AS pr USING (product_code)
   WHERE p.starts <= p_close AND p.expires > p_close
     AND p_close IN (SELECT day FROM calendar_day WHERE is_close = 1);
END
//
-- == chain_ladder
-- reads: paid_claim, paid_claim_sum
-- writes: triangle, factor
CREATE PROCEDURE chain_ladder(IN p_line VARCHAR(10))
BEGIN
  REPLACE INTO triangle (line, origin, dev, paid)
  SELECT p_line, YEAR(occurred_on), YEAR(paid_on) - YEAR(occurred_on), SUM(amount) FROM paid_claim WHERE line = p_line GROUP BY 2, 3;
  DELETE FROM factor WHERE line = p_line;
  INSERT INTO factor (line, dev, value)
  SELECT a.line, a.dev, SUM(b.paid) / SUM(a.paid)
    FROM (SELECT line, origin, dev, paid FROM paid_claim_sum) a JOIN paid_claim_sum b ON b.origin = a.origin AND b.dev = a.dev + 1
   WHERE a.line = p_line GROUP BY a.line, a.dev;
END
//

-- Demo set-up for PostgreSQL: tables, procedures and sample data of one quarter.
--
-- Only for the demo. A real team has these tables and procedures already and leaves the job
-- QUARTER_SETUP out. It may run any number of times; other quarters stay as they are.
--
-- Signs: a debit is positive, a credit negative; a balanced set of amounts adds up to zero.
-- Simplified: share capital and retained earnings are translated at one historical rate a company.

CREATE TABLE IF NOT EXISTS group_account (
  account_code VARCHAR(10) PRIMARY KEY,
  account_name VARCHAR(100) NOT NULL,
  account_type CHAR(1) NOT NULL              -- Asset, Liability, Equity, Revenue, eXpense, Minority's profit
);

CREATE TABLE IF NOT EXISTS group_company (
  entity          VARCHAR(10) PRIMARY KEY,
  entity_name     VARCHAR(60) NOT NULL,
  currency        CHAR(3) NOT NULL,
  share           NUMERIC(5,4) NOT NULL,     -- of the group
  investment_cost NUMERIC(18,2) NOT NULL     -- in the parent's books; 0 for the parent
);

CREATE TABLE IF NOT EXISTS group_rate (
  batch_no        VARCHAR(50) NOT NULL,
  currency        CHAR(3) NOT NULL,
  rate_date       DATE NOT NULL,
  avg_rate        NUMERIC(12,6) NOT NULL,
  closing_rate    NUMERIC(12,6) NOT NULL,
  historical_rate NUMERIC(12,6) NOT NULL,
  PRIMARY KEY (batch_no, currency)
);

CREATE TABLE IF NOT EXISTS entity_balance (
  batch_no     VARCHAR(50) NOT NULL,
  entity       VARCHAR(10) NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  amount       NUMERIC(18,2) NOT NULL,       -- in the company's own currency
  PRIMARY KEY (batch_no, entity, account_code)
);

CREATE TABLE IF NOT EXISTS translated_balance (
  batch_no     VARCHAR(50) NOT NULL,
  entity       VARCHAR(10) NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  amount       NUMERIC(18,2) NOT NULL,       -- in group currency
  PRIMARY KEY (batch_no, entity, account_code)
);

CREATE TABLE IF NOT EXISTS group_entry (
  batch_no     VARCHAR(50) NOT NULL,
  step         VARCHAR(10) NOT NULL,         -- IC, INV, NCI
  entity       VARCHAR(10) NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  amount       NUMERIC(18,2) NOT NULL,       -- in group currency
  PRIMARY KEY (batch_no, step, entity, account_code)
);

CREATE TABLE IF NOT EXISTS package_status (
  batch_no   VARCHAR(50) NOT NULL,
  entity     VARCHAR(10) NOT NULL,
  line_count BIGINT NOT NULL,
  PRIMARY KEY (batch_no, entity)
);

CREATE TABLE IF NOT EXISTS group_balance (
  batch_no     VARCHAR(50) NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  amount       NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, account_code)
);

CREATE TABLE IF NOT EXISTS group_statement (
  batch_no  VARCHAR(50) NOT NULL,
  statement VARCHAR(10) NOT NULL,            -- INCOME, BALANCE
  line_no   INTEGER NOT NULL,
  caption   VARCHAR(100) NOT NULL,
  amount    NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, statement, line_no)
);

-- Procedures -------------------------------------------------------------------------------------

CREATE OR REPLACE PROCEDURE sp_gc_rates_check(
  IN p_batch_no TEXT, IN p_business_date DATE, INOUT p_rows BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
  v_missing TEXT;
BEGIN
  SELECT string_agg(c.entity, ', ' ORDER BY c.entity) INTO v_missing
    FROM group_company c
   WHERE NOT EXISTS (SELECT 1 FROM group_rate r
                      WHERE r.batch_no = p_batch_no AND r.currency = c.currency
                        AND r.rate_date = p_business_date);
  IF v_missing IS NOT NULL THEN
    RAISE EXCEPTION 'quarter %: no rate of % for %', p_batch_no, p_business_date, v_missing;
  END IF;
  SELECT COUNT(*) INTO p_rows FROM group_rate WHERE batch_no = p_batch_no;
  RAISE NOTICE '% rates of %', p_rows, p_business_date;
END $$;

-- Assets and liabilities at the closing rate, income and expense at the average, equity at the
-- historical one; what is then missing to zero is the translation reserve (3900).
CREATE OR REPLACE PROCEDURE sp_gc_translate(
  IN p_batch_no TEXT, IN p_entity TEXT, INOUT p_rows BIGINT, INOUT p_reserve NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
  v_balance NUMERIC(18,2);
BEGIN
  DELETE FROM translated_balance WHERE batch_no = p_batch_no AND entity = p_entity;
  SELECT COALESCE(SUM(amount), 0) INTO v_balance
    FROM entity_balance WHERE batch_no = p_batch_no AND entity = p_entity;
  IF v_balance <> 0 THEN
    RAISE EXCEPTION 'the trial balance of % does not balance: %', p_entity, v_balance;
  END IF;
  INSERT INTO translated_balance (batch_no, entity, account_code, amount)
  SELECT b.batch_no, b.entity, b.account_code,
         ROUND(b.amount * CASE WHEN a.account_type IN ('A', 'L') THEN r.closing_rate
                               WHEN a.account_type = 'E' THEN r.historical_rate
                               ELSE r.avg_rate END, 2)
    FROM entity_balance b
    JOIN group_account a ON a.account_code = b.account_code
    JOIN group_company c ON c.entity = b.entity
    JOIN group_rate r ON r.batch_no = b.batch_no AND r.currency = c.currency
   WHERE b.batch_no = p_batch_no AND b.entity = p_entity;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(-SUM(amount), 0) INTO p_reserve
    FROM translated_balance WHERE batch_no = p_batch_no AND entity = p_entity;
  INSERT INTO translated_balance (batch_no, entity, account_code, amount)
  VALUES (p_batch_no, p_entity, '3900', p_reserve);
  RAISE NOTICE '%: % lines, translation reserve %', p_entity, p_rows, p_reserve;
END $$;

-- What the two sides of the group's own dealings differ by, mostly from exchange rates.
CREATE OR REPLACE PROCEDURE sp_gc_ic_match(
  IN p_batch_no TEXT, IN p_tolerance NUMERIC, INOUT p_difference NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT COALESCE(SUM(amount), 0) INTO p_difference
    FROM translated_balance
   WHERE batch_no = p_batch_no AND account_code IN ('1200', '2100', '4100', '5100');
  IF ABS(p_difference) > p_tolerance THEN
    RAISE EXCEPTION 'intercompany balances of % differ by %, more than %', p_batch_no,
      p_difference, p_tolerance;
  END IF;
  RAISE NOTICE 'intercompany difference %', p_difference;
END $$;

CREATE OR REPLACE PROCEDURE sp_gc_ic_eliminate(
  IN p_batch_no TEXT, IN p_difference NUMERIC, INOUT p_rows BIGINT)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM group_entry WHERE batch_no = p_batch_no AND step = 'IC';
  INSERT INTO group_entry (batch_no, step, entity, account_code, amount)
  SELECT batch_no, 'IC', entity, account_code, -amount
    FROM translated_balance
   WHERE batch_no = p_batch_no AND account_code IN ('1200', '2100', '4100', '5100')
  UNION ALL
  SELECT p_batch_no, 'IC', 'GROUP', '6100', p_difference;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  RAISE NOTICE '% elimination entries', p_rows;
END $$;

CREATE OR REPLACE PROCEDURE sp_gc_investment(IN p_batch_no TEXT, INOUT p_goodwill NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM group_entry WHERE batch_no = p_batch_no AND step = 'INV';
  INSERT INTO group_entry (batch_no, step, entity, account_code, amount)
  WITH v AS (
    SELECT e.entity, -e.amount AS capital, c.investment_cost AS cost,
           -e.amount - ROUND(-e.amount * c.share, 2) AS minority
      FROM translated_balance e JOIN group_company c ON c.entity = e.entity
     WHERE e.batch_no = p_batch_no AND e.account_code = '3000'
       AND c.investment_cost > 0)
  SELECT p_batch_no, 'INV', entity, '3000', capital FROM v
  UNION ALL SELECT p_batch_no, 'INV', entity, '1500', -cost FROM v
  UNION ALL SELECT p_batch_no, 'INV', entity, '3800', -minority FROM v
  UNION ALL SELECT p_batch_no, 'INV', entity, '1700', cost + minority - capital FROM v;
  SELECT COALESCE(SUM(amount), 0) INTO p_goodwill
    FROM group_entry WHERE batch_no = p_batch_no AND step = 'INV' AND account_code = '1700';
  RAISE NOTICE 'goodwill %', p_goodwill;
END $$;

CREATE OR REPLACE PROCEDURE sp_gc_minority(IN p_batch_no TEXT, INOUT p_minority NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM group_entry WHERE batch_no = p_batch_no AND step = 'NCI';
  INSERT INTO group_entry (batch_no, step, entity, account_code, amount)
  WITH v AS (
    SELECT e.entity,
           CASE WHEN a.account_type IN ('R', 'X') THEN '8000' ELSE e.account_code END
             AS account_code,
           -ROUND(SUM(e.amount) * (1 - MAX(c.share)), 2) AS part
      FROM translated_balance e
      JOIN group_account a ON a.account_code = e.account_code
      JOIN group_company c ON c.entity = e.entity
     WHERE e.batch_no = p_batch_no AND c.share < 1
       AND (a.account_type IN ('R', 'X') OR e.account_code IN ('3100', '3900'))
     GROUP BY e.entity,
              CASE WHEN a.account_type IN ('R', 'X') THEN '8000' ELSE e.account_code END)
  SELECT p_batch_no, 'NCI', entity, account_code, part FROM v
  UNION ALL
  SELECT p_batch_no, 'NCI', entity, '3800', -SUM(part) FROM v GROUP BY entity;
  SELECT COALESCE(-SUM(amount), 0) INTO p_minority
    FROM group_entry
   WHERE batch_no = p_batch_no AND step IN ('INV', 'NCI') AND account_code = '3800';
  RAISE NOTICE 'minority interest %', p_minority;
END $$;

CREATE OR REPLACE PROCEDURE sp_gc_trial_balance(
  IN p_batch_no TEXT, IN p_packages BIGINT, INOUT p_rows BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
  v_companies BIGINT;
  v_balance   NUMERIC(18,2);
BEGIN
  SELECT COUNT(*) INTO v_companies FROM group_company;
  IF p_packages <> v_companies THEN
    RAISE EXCEPTION 'quarter %: % of % companies have delivered', p_batch_no, p_packages,
      v_companies;
  END IF;
  DELETE FROM group_balance WHERE batch_no = p_batch_no;
  INSERT INTO group_balance (batch_no, account_code, amount)
  SELECT batch_no, account_code, SUM(amount)
    FROM (SELECT batch_no, account_code, amount
            FROM translated_balance WHERE batch_no = p_batch_no
          UNION ALL
          SELECT batch_no, account_code, amount
            FROM group_entry WHERE batch_no = p_batch_no) e
   GROUP BY batch_no, account_code;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(amount), 0) INTO v_balance FROM group_balance WHERE batch_no = p_batch_no;
  IF v_balance <> 0 THEN
    RAISE EXCEPTION 'consolidated trial balance %: off by %', p_batch_no, v_balance;
  END IF;
  RAISE NOTICE 'consolidated trial balance: % accounts', p_rows;
END $$;

-- p_net_income: what is left for the group after the minority's part.
CREATE OR REPLACE PROCEDURE sp_gc_income(IN p_batch_no TEXT, INOUT p_net_income NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM group_statement WHERE batch_no = p_batch_no AND statement = 'INCOME';
  INSERT INTO group_statement (batch_no, statement, line_no, caption, amount)
  SELECT b.batch_no, 'INCOME', CAST(b.account_code AS INTEGER), a.account_name, -b.amount
    FROM group_balance b JOIN group_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no AND a.account_type IN ('R', 'X', 'M') AND b.amount <> 0
  UNION ALL
  SELECT p_batch_no, 'INCOME', 7999, '合并净利润 Profit of the quarter', COALESCE(-SUM(b.amount), 0)
    FROM group_balance b JOIN group_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no AND a.account_type IN ('R', 'X')
  UNION ALL
  SELECT p_batch_no, 'INCOME', 8999, '归属于母公司 Attributable to the group',
         COALESCE(-SUM(b.amount), 0)
    FROM group_balance b JOIN group_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no AND a.account_type IN ('R', 'X', 'M');
  SELECT amount INTO p_net_income
    FROM group_statement
   WHERE batch_no = p_batch_no AND statement = 'INCOME' AND line_no = 8999;
  RAISE NOTICE 'attributable to the group: %', p_net_income;
END $$;

CREATE OR REPLACE PROCEDURE sp_gc_balance(
  IN p_batch_no TEXT, IN p_net_income NUMERIC, INOUT p_total_assets NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
  v_claims NUMERIC(18,2);
BEGIN
  DELETE FROM group_statement WHERE batch_no = p_batch_no AND statement = 'BALANCE';
  SELECT COALESCE(SUM(CASE a.account_type WHEN 'A' THEN b.amount END), 0),
         COALESCE(-SUM(CASE WHEN a.account_type IN ('L', 'E') THEN b.amount END), 0)
           + p_net_income
    INTO p_total_assets, v_claims
    FROM group_balance b JOIN group_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no;
  IF p_total_assets <> v_claims THEN
    RAISE EXCEPTION 'consolidated balance sheet %: assets % and claims % differ', p_batch_no,
      p_total_assets, v_claims;
  END IF;
  INSERT INTO group_statement (batch_no, statement, line_no, caption, amount)
  SELECT b.batch_no, 'BALANCE', CAST(b.account_code AS INTEGER), a.account_name,
         CASE a.account_type WHEN 'A' THEN b.amount ELSE -b.amount END
    FROM group_balance b JOIN group_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no AND a.account_type IN ('A', 'L', 'E') AND b.amount <> 0
  UNION ALL
  SELECT p_batch_no, 'BALANCE', 1999, '资产总计 Total assets', p_total_assets
  UNION ALL
  SELECT p_batch_no, 'BALANCE', 3990, '本季利润 Profit of the quarter', p_net_income
  UNION ALL
  SELECT p_batch_no, 'BALANCE', 3999, '负债和权益总计 Total liabilities and equity', v_claims;
  RAISE NOTICE 'total assets %', p_total_assets;
END $$;

-- Sample data ------------------------------------------------------------------------------------

DELETE FROM group_account;
INSERT INTO group_account (account_code, account_name, account_type) VALUES
  ('1000', '货币资金 Cash', 'A'),
  ('1100', '应收账款 Receivables', 'A'),
  ('1200', '内部应收 Due from group companies', 'A'),
  ('1400', '存货 Inventory', 'A'),
  ('1500', '长期股权投资 Investments in subsidiaries', 'A'),
  ('1600', '固定资产 Fixed assets', 'A'),
  ('1700', '商誉 Goodwill', 'A'),
  ('2000', '应付账款 Payables', 'L'),
  ('2100', '内部应付 Due to group companies', 'L'),
  ('2500', '长期借款 Long-term loans', 'L'),
  ('3000', '实收资本 Share capital', 'E'),
  ('3100', '未分配利润 Retained earnings', 'E'),
  ('3800', '少数股东权益 Minority interest', 'E'),
  ('3900', '外币折算差额 Translation reserve', 'E'),
  ('4000', '营业收入 Revenue', 'R'),
  ('4100', '内部收入 Revenue from group companies', 'R'),
  ('5000', '营业成本 Cost of sales', 'X'),
  ('5100', '内部成本 Cost from group companies', 'X'),
  ('6000', '期间费用 Operating expenses', 'X'),
  ('6100', '汇兑差额 Exchange differences', 'X'),
  ('7000', '所得税 Income tax', 'X'),
  ('8000', '少数股东损益 Minority interest in profit', 'M');

DELETE FROM group_company;
INSERT INTO group_company (entity, entity_name, currency, share, investment_cost) VALUES
  ('CN01', 'Ocean Trading 上海', 'CNY', 1.0000, 0.00),
  ('US01', 'Ocean Trading US', 'USD', 1.0000, 5400000.00),
  ('DE01', 'Ocean Trading DE', 'EUR', 0.8000, 3900000.00);

DELETE FROM group_rate WHERE batch_no = :batch_no;
INSERT INTO group_rate
  (batch_no, currency, rate_date, avg_rate, closing_rate, historical_rate) VALUES
  (:batch_no, 'CNY', CAST(:business_date AS DATE), 1.000000, 1.000000, 1.000000),
  (:batch_no, 'USD', CAST(:business_date AS DATE), 7.146400, 7.007400, 6.900000),
  (:batch_no, 'EUR', CAST(:business_date AS DATE), 7.851200, 7.826700, 7.500000);

DELETE FROM entity_balance WHERE batch_no = :batch_no;
INSERT INTO entity_balance (batch_no, entity, account_code, amount) VALUES
  (:batch_no, 'CN01', '1000', 3200000.00),
  (:batch_no, 'CN01', '1100', 2450000.00),
  (:batch_no, 'CN01', '1200', 1420000.00),
  (:batch_no, 'CN01', '1400', 1800000.00),
  (:batch_no, 'CN01', '1500', 9300000.00),
  (:batch_no, 'CN01', '1600', 5600000.00),
  (:batch_no, 'CN01', '2000', -2100000.00),
  (:batch_no, 'CN01', '2500', -4000000.00),
  (:batch_no, 'CN01', '3000', -12000000.00),
  (:batch_no, 'CN01', '3100', -3310000.00),
  (:batch_no, 'CN01', '4000', -8600000.00),
  (:batch_no, 'CN01', '4100', -1420000.00),
  (:batch_no, 'CN01', '5000', 5200000.00),
  (:batch_no, 'CN01', '6000', 2150000.00),
  (:batch_no, 'CN01', '7000', 310000.00),
  (:batch_no, 'US01', '1000', 410000.00),
  (:batch_no, 'US01', '1100', 365000.35),
  (:batch_no, 'US01', '1400', 240000.00),
  (:batch_no, 'US01', '1600', 620000.00),
  (:batch_no, 'US01', '2000', -275000.35),
  (:batch_no, 'US01', '2100', -118400.00),
  (:batch_no, 'US01', '3000', -700000.00),
  (:batch_no, 'US01', '3100', -454500.00),
  (:batch_no, 'US01', '4000', -980000.77),
  (:batch_no, 'US01', '5000', 505000.77),
  (:batch_no, 'US01', '5100', 118400.00),
  (:batch_no, 'US01', '6000', 240500.00),
  (:batch_no, 'US01', '7000', 29000.00),
  (:batch_no, 'DE01', '1000', 220000.00),
  (:batch_no, 'DE01', '1100', 190000.19),
  (:batch_no, 'DE01', '1400', 130000.00),
  (:batch_no, 'DE01', '1600', 480000.00),
  (:batch_no, 'DE01', '2000', -142000.19),
  (:batch_no, 'DE01', '2100', -75900.00),
  (:batch_no, 'DE01', '2500', -90000.00),
  (:batch_no, 'DE01', '3000', -400000.00),
  (:batch_no, 'DE01', '3100', -248000.00),
  (:batch_no, 'DE01', '4000', -610000.41),
  (:batch_no, 'DE01', '5000', 300000.41),
  (:batch_no, 'DE01', '5100', 75900.00),
  (:batch_no, 'DE01', '6000', 148000.00),
  (:batch_no, 'DE01', '7000', 22000.00);

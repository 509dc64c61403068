-- Demo set-up for PostgreSQL: tables, procedures and sample data of one batch.
--
-- Only for the demo. A real team has these tables and procedures already and leaves the job
-- DEMO_SETUP out. It may run any number of times: tables are made if missing, procedures replaced,
-- and the sample data of the batch deleted and loaded again; other batches stay as they are.
--
-- Signs: in opening_balance, gl_balance and amount_fc a debit is positive, a credit negative.
-- Money is NUMERIC(18,2); ROUND() of a NUMERIC rounds halves away from zero.

-- Master data ------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS demo_number (n INTEGER PRIMARY KEY);

CREATE TABLE IF NOT EXISTS period (
  batch_no     VARCHAR(50) PRIMARY KEY,
  period_start DATE NOT NULL,
  period_end   DATE NOT NULL,
  month_index  INTEGER NOT NULL,             -- year * 12 + month
  status       VARCHAR(10) NOT NULL,         -- OPEN, LOCKED
  pack_lines   BIGINT
);

CREATE TABLE IF NOT EXISTS gl_account (
  account_code VARCHAR(10) PRIMARY KEY,
  account_name VARCHAR(100) NOT NULL,
  account_type CHAR(1) NOT NULL,             -- Asset, Liability, Equity, Revenue, eXpense
  statement_line VARCHAR(30) NOT NULL
);

CREATE TABLE IF NOT EXISTS fixed_asset (
  asset_no    INTEGER PRIMARY KEY,
  asset_name  VARCHAR(60) NOT NULL,
  cost        NUMERIC(18,2) NOT NULL,
  salvage     NUMERIC(18,2) NOT NULL,
  life_months INTEGER NOT NULL,
  in_service  DATE NOT NULL
);

CREATE TABLE IF NOT EXISTS accrual_rule (
  rule_no         INTEGER PRIMARY KEY,
  description     VARCHAR(60) NOT NULL,
  expense_account VARCHAR(10) NOT NULL,
  amount          NUMERIC(18,2) NOT NULL
);

CREATE TABLE IF NOT EXISTS prepayment (
  prepay_no       INTEGER PRIMARY KEY,
  description     VARCHAR(60) NOT NULL,
  expense_account VARCHAR(10) NOT NULL,
  total           NUMERIC(18,2) NOT NULL,
  months          INTEGER NOT NULL,
  first_month     DATE NOT NULL
);

-- What the source systems deliver for a period ---------------------------------------------------

CREATE TABLE IF NOT EXISTS opening_balance (
  batch_no     VARCHAR(50) NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  currency     CHAR(3) NOT NULL,
  amount_fc    NUMERIC(18,2) NOT NULL,
  amount       NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, account_code, currency)
);

CREATE TABLE IF NOT EXISTS fx_feed (
  batch_no     VARCHAR(50) NOT NULL,
  currency     CHAR(3) NOT NULL,
  avg_rate     NUMERIC(12,6) NOT NULL,
  closing_rate NUMERIC(12,6) NOT NULL,
  PRIMARY KEY (batch_no, currency)
);

CREATE TABLE IF NOT EXISTS ar_invoice (
  batch_no     VARCHAR(50) NOT NULL,
  invoice_no   INTEGER NOT NULL,
  customer     VARCHAR(40) NOT NULL,
  invoice_date DATE NOT NULL,
  currency     CHAR(3) NOT NULL,
  net          NUMERIC(18,2) NOT NULL,
  tax          NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, invoice_no)
);

CREATE TABLE IF NOT EXISTS ap_invoice (
  batch_no     VARCHAR(50) NOT NULL,
  invoice_no   INTEGER NOT NULL,
  supplier     VARCHAR(40) NOT NULL,
  invoice_date DATE NOT NULL,
  cost_account VARCHAR(10) NOT NULL,
  currency     CHAR(3) NOT NULL,
  net          NUMERIC(18,2) NOT NULL,
  tax          NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, invoice_no)
);

CREATE TABLE IF NOT EXISTS bank_line (
  batch_no   VARCHAR(50) NOT NULL,
  line_no    INTEGER NOT NULL,
  value_date DATE NOT NULL,
  kind       VARCHAR(10) NOT NULL,           -- RECEIPT, PAYMENT, SALARY, CHARGE, INTEREST
  currency   CHAR(3) NOT NULL,
  amount     NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, line_no)
);

CREATE TABLE IF NOT EXISTS payroll_line (
  batch_no    VARCHAR(50) NOT NULL,
  employee_no INTEGER NOT NULL,
  department  VARCHAR(10) NOT NULL,
  gross       NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, employee_no)
);

CREATE TABLE IF NOT EXISTS stock_movement (
  batch_no  VARCHAR(50) NOT NULL,
  move_no   INTEGER NOT NULL,
  item      VARCHAR(20) NOT NULL,
  kind      VARCHAR(10) NOT NULL,            -- ISSUE, LOSS, GAIN
  quantity  INTEGER NOT NULL,
  unit_cost NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, move_no)
);

CREATE TABLE IF NOT EXISTS intercompany_charge (
  batch_no  VARCHAR(50) NOT NULL,
  charge_no INTEGER NOT NULL,
  partner   VARCHAR(40) NOT NULL,
  direction VARCHAR(3) NOT NULL,             -- OUT: we charge; IN: we are charged
  amount    NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, charge_no)
);

-- What the close makes ---------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS fx_rate (
  batch_no     VARCHAR(50) NOT NULL,
  currency     CHAR(3) NOT NULL,
  avg_rate     NUMERIC(12,6) NOT NULL,
  closing_rate NUMERIC(12,6) NOT NULL,
  PRIMARY KEY (batch_no, currency)
);

CREATE TABLE IF NOT EXISTS journal_line (
  batch_no     VARCHAR(50) NOT NULL,
  journal_code VARCHAR(10) NOT NULL,
  line_no      INTEGER NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  currency     CHAR(3) NOT NULL,
  amount_fc    NUMERIC(18,2) NOT NULL,
  debit        NUMERIC(18,2) NOT NULL,
  credit       NUMERIC(18,2) NOT NULL,
  memo         VARCHAR(100),
  PRIMARY KEY (batch_no, journal_code, line_no)
);

CREATE TABLE IF NOT EXISTS gl_balance (
  batch_no     VARCHAR(50) NOT NULL,
  account_code VARCHAR(10) NOT NULL,
  opening      NUMERIC(18,2) NOT NULL,
  debit        NUMERIC(18,2) NOT NULL,
  credit       NUMERIC(18,2) NOT NULL,
  closing      NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, account_code)
);

CREATE TABLE IF NOT EXISTS trial_balance (
  batch_no       VARCHAR(50) NOT NULL,
  account_code   VARCHAR(10) NOT NULL,
  account_name   VARCHAR(100) NOT NULL,
  debit          NUMERIC(18,2) NOT NULL,
  credit         NUMERIC(18,2) NOT NULL,
  closing_debit  NUMERIC(18,2) NOT NULL,
  closing_credit NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, account_code)
);

CREATE TABLE IF NOT EXISTS income_statement (
  batch_no VARCHAR(50) NOT NULL,
  line_no  INTEGER NOT NULL,
  caption  VARCHAR(60) NOT NULL,
  amount   NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, line_no)
);

CREATE TABLE IF NOT EXISTS balance_sheet (
  batch_no VARCHAR(50) NOT NULL,
  line_no  INTEGER NOT NULL,
  section  VARCHAR(10) NOT NULL,             -- ASSET, LIABILITY, EQUITY
  caption  VARCHAR(100) NOT NULL,
  amount   NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, line_no)
);

CREATE TABLE IF NOT EXISTS control_check (
  batch_no     VARCHAR(50) NOT NULL,
  control_code VARCHAR(30) NOT NULL,
  expected     NUMERIC(18,2) NOT NULL,
  actual       NUMERIC(18,2) NOT NULL,
  PRIMARY KEY (batch_no, control_code),
  CONSTRAINT control_totals_must_agree CHECK (expected = actual)
);

CREATE TABLE IF NOT EXISTS journal_stat (
  batch_no     VARCHAR(50) NOT NULL,
  journal_code VARCHAR(10) NOT NULL,
  line_count   BIGINT NOT NULL,
  PRIMARY KEY (batch_no, journal_code)
);

CREATE TABLE IF NOT EXISTS close_figure (
  batch_no VARCHAR(50) NOT NULL,
  figure   VARCHAR(30) NOT NULL,
  value    VARCHAR(40) NOT NULL,             -- exact decimal text, the same on every database
  PRIMARY KEY (batch_no, figure)
);

-- Procedures -------------------------------------------------------------------------------------
-- None commits or rolls back: that is the caller's business. Each may run again at any time.

CREATE OR REPLACE PROCEDURE sp_period_open(
  IN p_batch_no TEXT, INOUT p_period_start DATE, INOUT p_period_end DATE)
LANGUAGE plpgsql AS $$
DECLARE
  v_status TEXT;
BEGIN
  SELECT period_start, period_end, status INTO p_period_start, p_period_end, v_status
    FROM period WHERE batch_no = p_batch_no;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'period % is not known; open it first', p_batch_no;
  END IF;
  IF v_status <> 'OPEN' THEN
    RAISE EXCEPTION 'period % is %; reopen it before closing it again', p_batch_no, v_status;
  END IF;
  RAISE NOTICE 'period % is open: % to %', p_batch_no, p_period_start, p_period_end;
END $$;

CREATE OR REPLACE PROCEDURE sp_fx_load(
  IN p_batch_no TEXT, IN p_base_currency TEXT, INOUT p_rows BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
  v_missing TEXT;
BEGIN
  DELETE FROM fx_rate WHERE batch_no = p_batch_no;
  INSERT INTO fx_rate (batch_no, currency, avg_rate, closing_rate)
  SELECT batch_no, currency, avg_rate, closing_rate FROM fx_feed WHERE batch_no = p_batch_no
  UNION ALL
  SELECT p_batch_no, p_base_currency, 1, 1;
  GET DIAGNOSTICS p_rows = ROW_COUNT;

  SELECT string_agg(DISTINCT u.currency, ', ') INTO v_missing
    FROM (SELECT currency FROM ar_invoice WHERE batch_no = p_batch_no
          UNION SELECT currency FROM ap_invoice WHERE batch_no = p_batch_no
          UNION SELECT currency FROM bank_line WHERE batch_no = p_batch_no
          UNION SELECT currency FROM opening_balance WHERE batch_no = p_batch_no) u
   WHERE NOT EXISTS (SELECT 1 FROM fx_rate r
                      WHERE r.batch_no = p_batch_no AND r.currency = u.currency);
  IF v_missing IS NOT NULL THEN
    RAISE EXCEPTION 'period %: no rate for %', p_batch_no, v_missing;
  END IF;
  RAISE NOTICE '% rates loaded', p_rows;
END $$;

CREATE OR REPLACE PROCEDURE sp_sl_ap(IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'AP';
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH v AS (
    SELECT i.invoice_no, i.supplier, i.cost_account, i.currency, i.net, i.tax,
           ROUND(i.net * r.avg_rate, 2) AS net_base, ROUND(i.tax * r.avg_rate, 2) AS tax_base
      FROM ap_invoice i JOIN fx_rate r ON r.batch_no = i.batch_no AND r.currency = i.currency
     WHERE i.batch_no = p_batch_no)
  SELECT p_batch_no, 'AP', invoice_no * 10 + 1, cost_account, currency, net, net_base, 0, supplier
    FROM v
  UNION ALL
  SELECT p_batch_no, 'AP', invoice_no * 10 + 2, '2221', currency, tax, tax_base, 0, supplier
    FROM v WHERE tax <> 0
  UNION ALL
  SELECT p_batch_no, 'AP', invoice_no * 10 + 3, '2202', currency, -(net + tax), 0,
         net_base + tax_base, supplier
    FROM v;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(credit), 0) INTO p_total
    FROM journal_line
   WHERE batch_no = p_batch_no AND journal_code = 'AP' AND account_code = '2202';
  RAISE NOTICE 'AP: % lines, payable %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_sl_ar(IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'AR';
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH v AS (
    SELECT i.invoice_no, i.customer, i.currency, i.net, i.tax,
           ROUND(i.net * r.avg_rate, 2) AS net_base, ROUND(i.tax * r.avg_rate, 2) AS tax_base
      FROM ar_invoice i JOIN fx_rate r ON r.batch_no = i.batch_no AND r.currency = i.currency
     WHERE i.batch_no = p_batch_no)
  SELECT p_batch_no, 'AR', invoice_no * 10 + 1, '1122', currency, net + tax, net_base + tax_base,
         0, customer
    FROM v
  UNION ALL
  SELECT p_batch_no, 'AR', invoice_no * 10 + 2, '6001', currency, -net, 0, net_base, customer
    FROM v
  UNION ALL
  SELECT p_batch_no, 'AR', invoice_no * 10 + 3, '2221', currency, -tax, 0, tax_base, customer
    FROM v WHERE tax <> 0;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line
   WHERE batch_no = p_batch_no AND journal_code = 'AR' AND account_code = '1122';
  RAISE NOTICE 'AR: % lines, receivable %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_sl_bank(IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'BANK';
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH v AS (
    SELECT b.line_no, b.kind, b.currency, b.amount, ROUND(b.amount * r.avg_rate, 2) AS base,
           CASE WHEN b.currency = 'CNY' THEN '1002' ELSE '1003' END AS bank_account,
           CASE b.kind WHEN 'RECEIPT' THEN '1122' WHEN 'PAYMENT' THEN '2202'
                       WHEN 'SALARY' THEN '2211' ELSE '6603' END AS other_account,
           CASE WHEN b.kind IN ('RECEIPT', 'INTEREST') THEN 1 ELSE -1 END AS sign
      FROM bank_line b JOIN fx_rate r ON r.batch_no = b.batch_no AND r.currency = b.currency
     WHERE b.batch_no = p_batch_no)
  SELECT p_batch_no, 'BANK', line_no * 10 + 1, bank_account, currency, sign * amount,
         CASE WHEN sign = 1 THEN base ELSE 0 END, CASE WHEN sign = -1 THEN base ELSE 0 END, kind
    FROM v
  UNION ALL
  SELECT p_batch_no, 'BANK', line_no * 10 + 2, other_account, currency, -sign * amount,
         CASE WHEN sign = -1 THEN base ELSE 0 END, CASE WHEN sign = 1 THEN base ELSE 0 END, kind
    FROM v;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'BANK';
  RAISE NOTICE 'BANK: % lines, turnover %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_sl_payroll(IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'PAY';
  -- Employee: 8 % income tax and 10.5 % social insurance withheld; employer: 16 % on top.
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH v AS (
    SELECT department, ROW_NUMBER() OVER (ORDER BY department) AS dept_no, SUM(gross) AS gross,
           ROUND(SUM(gross) * 0.08, 2) AS tax, ROUND(SUM(gross) * 0.105, 2) AS employee_social,
           ROUND(SUM(gross) * 0.16, 2) AS employer_social
      FROM payroll_line WHERE batch_no = p_batch_no GROUP BY department)
  SELECT p_batch_no, 'PAY', dept_no * 10 + 1,
         CASE WHEN department = 'SALES' THEN '6601' ELSE '6602' END, 'CNY',
         gross + employer_social, gross + employer_social, 0, department
    FROM v
  UNION ALL
  SELECT p_batch_no, 'PAY', dept_no * 10 + 2, '2211', 'CNY', -(gross - tax - employee_social), 0,
         gross - tax - employee_social, department
    FROM v
  UNION ALL
  SELECT p_batch_no, 'PAY', dept_no * 10 + 3, '2221', 'CNY', -tax, 0, tax, department FROM v
  UNION ALL
  SELECT p_batch_no, 'PAY', dept_no * 10 + 4, '2241', 'CNY', -(employee_social + employer_social),
         0, employee_social + employer_social, department
    FROM v;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'PAY';
  RAISE NOTICE 'PAY: % lines, cost of staff %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_fa_depreciation(
  IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'FA';
  -- Straight line from the month after an asset went into service; the last month takes the rest.
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH a AS (
    SELECT f.asset_no, f.asset_name, f.life_months, f.cost - f.salvage AS base,
           ROUND((f.cost - f.salvage) / f.life_months, 2) AS monthly,
           p.month_index - (EXTRACT(YEAR FROM f.in_service) * 12
                            + EXTRACT(MONTH FROM f.in_service)) AS month_no
      FROM fixed_asset f CROSS JOIN period p
     WHERE p.batch_no = p_batch_no),
  v AS (
    SELECT asset_no, asset_name,
           CASE WHEN month_no < life_months THEN monthly
                ELSE base - monthly * (life_months - 1) END AS amount
      FROM a WHERE month_no BETWEEN 1 AND life_months)
  SELECT p_batch_no, 'FA', asset_no * 10 + 1, '6604', 'CNY', amount, amount, 0, asset_name FROM v
  UNION ALL
  SELECT p_batch_no, 'FA', asset_no * 10 + 2, '1602', 'CNY', -amount, 0, amount, asset_name FROM v;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'FA';
  RAISE NOTICE 'FA: % lines, depreciation %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_sl_inventory(
  IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'INV';
  -- Issues are cost of sales, count differences administrative expense.
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH v AS (
    SELECT move_no, item, quantity * unit_cost AS amount,
           CASE WHEN kind = 'ISSUE' THEN '6401' ELSE '6602' END AS cost_account,
           CASE WHEN kind = 'GAIN' THEN -1 ELSE 1 END AS sign
      FROM stock_movement WHERE batch_no = p_batch_no)
  SELECT p_batch_no, 'INV', move_no * 10 + 1, cost_account, 'CNY', sign * amount,
         CASE WHEN sign = 1 THEN amount ELSE 0 END, CASE WHEN sign = -1 THEN amount ELSE 0 END, item
    FROM v
  UNION ALL
  SELECT p_batch_no, 'INV', move_no * 10 + 2, '1405', 'CNY', -sign * amount,
         CASE WHEN sign = -1 THEN amount ELSE 0 END, CASE WHEN sign = 1 THEN amount ELSE 0 END, item
    FROM v;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'INV';
  RAISE NOTICE 'INV: % lines, moved %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_prepaid_amortisation(
  IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'PREP';
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH a AS (
    SELECT f.prepay_no, f.description, f.expense_account, f.total, f.months,
           ROUND(f.total / f.months, 2) AS monthly,
           p.month_index - (EXTRACT(YEAR FROM f.first_month) * 12
                            + EXTRACT(MONTH FROM f.first_month)) + 1 AS month_no
      FROM prepayment f CROSS JOIN period p
     WHERE p.batch_no = p_batch_no),
  v AS (
    SELECT prepay_no, description, expense_account,
           CASE WHEN month_no < months THEN monthly
                ELSE total - monthly * (months - 1) END AS amount
      FROM a WHERE month_no BETWEEN 1 AND months)
  SELECT p_batch_no, 'PREP', prepay_no * 10 + 1, expense_account, 'CNY', amount, amount, 0,
         description
    FROM v
  UNION ALL
  SELECT p_batch_no, 'PREP', prepay_no * 10 + 2, '1123', 'CNY', -amount, 0, amount, description
    FROM v;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'PREP';
  RAISE NOTICE 'PREP: % lines, amortised %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_intercompany(
  IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'IC';
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  SELECT batch_no, 'IC', charge_no * 10 + 1, CASE direction WHEN 'OUT' THEN '1221' ELSE '6602' END,
         'CNY', amount, amount, 0, partner
    FROM intercompany_charge WHERE batch_no = p_batch_no
  UNION ALL
  SELECT batch_no, 'IC', charge_no * 10 + 2, CASE direction WHEN 'OUT' THEN '6051' ELSE '2242' END,
         'CNY', -amount, 0, amount, partner
    FROM intercompany_charge WHERE batch_no = p_batch_no;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total
    FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'IC';
  RAISE NOTICE 'IC: % lines, charged %', p_rows, p_total;
END $$;

-- p_total: the gain (positive) or loss (negative) of the revaluation.
CREATE OR REPLACE PROCEDURE sp_fx_revalue(
  IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'FXR';
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  WITH held AS (
    SELECT account_code, currency, amount_fc, amount
      FROM opening_balance WHERE batch_no = p_batch_no
    UNION ALL
    SELECT account_code, currency, amount_fc, debit - credit
      FROM journal_line
     WHERE batch_no = p_batch_no AND journal_code IN ('AP', 'AR', 'BANK')),
  v AS (
    SELECT h.account_code, h.currency,
           ROW_NUMBER() OVER (ORDER BY h.account_code, h.currency) AS pair_no,
           ROUND(SUM(h.amount_fc) * MAX(r.closing_rate), 2) - SUM(h.amount) AS gain
      FROM held h JOIN fx_rate r ON r.batch_no = p_batch_no AND r.currency = h.currency
     WHERE h.currency <> 'CNY' AND h.account_code IN ('1003', '1122', '2202')
     GROUP BY h.account_code, h.currency)
  SELECT p_batch_no, 'FXR', pair_no * 10 + 1, account_code, currency, 0,
         GREATEST(gain, 0), GREATEST(-gain, 0), 'revaluation ' || currency
    FROM v WHERE gain <> 0
  UNION ALL
  SELECT p_batch_no, 'FXR', pair_no * 10 + 2, '6061', 'CNY', -gain,
         GREATEST(-gain, 0), GREATEST(gain, 0), 'revaluation ' || currency
    FROM v WHERE gain <> 0;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(credit - debit), 0) INTO p_total
    FROM journal_line
   WHERE batch_no = p_batch_no AND journal_code = 'FXR' AND account_code = '6061';
  RAISE NOTICE 'FXR: % lines, gain %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_tax_provision(
  IN p_batch_no TEXT, INOUT p_rate NUMERIC, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
  v_profit NUMERIC(18,2);
BEGIN
  DELETE FROM journal_line WHERE batch_no = p_batch_no AND journal_code = 'TAX';
  SELECT COALESCE(SUM(j.credit - j.debit), 0) INTO v_profit
    FROM journal_line j JOIN gl_account a ON a.account_code = j.account_code
   WHERE j.batch_no = p_batch_no AND a.account_type IN ('R', 'X');
  IF v_profit <= 0 THEN
    p_rate := 0;
  END IF;
  p_total := ROUND(v_profit * p_rate, 2);
  INSERT INTO journal_line
    (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
  VALUES (p_batch_no, 'TAX', 11, '6801', 'CNY', p_total, p_total, 0, 'income tax'),
         (p_batch_no, 'TAX', 12, '2221', 'CNY', -p_total, 0, p_total, 'income tax');
  RAISE NOTICE 'TAX: profit before tax %, tax %', v_profit, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_post_gl(IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM gl_balance WHERE batch_no = p_batch_no;
  INSERT INTO gl_balance (batch_no, account_code, opening, debit, credit, closing)
  SELECT p_batch_no, account_code, SUM(opening), SUM(debit), SUM(credit),
         SUM(opening) + SUM(debit) - SUM(credit)
    FROM (SELECT account_code, amount AS opening, 0 AS debit, 0 AS credit
            FROM opening_balance WHERE batch_no = p_batch_no
          UNION ALL
          SELECT account_code, 0, debit, credit
            FROM journal_line WHERE batch_no = p_batch_no) m
   GROUP BY account_code;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0) INTO p_total FROM gl_balance WHERE batch_no = p_batch_no;
  RAISE NOTICE 'GL: % accounts posted, turnover %', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_trial_balance(
  IN p_batch_no TEXT, INOUT p_rows BIGINT, INOUT p_total NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
  v_debit          NUMERIC(18,2);
  v_credit         NUMERIC(18,2);
  v_closing_debit  NUMERIC(18,2);
  v_closing_credit NUMERIC(18,2);
BEGIN
  DELETE FROM trial_balance WHERE batch_no = p_batch_no;
  INSERT INTO trial_balance
    (batch_no, account_code, account_name, debit, credit, closing_debit, closing_credit)
  SELECT b.batch_no, b.account_code, a.account_name, b.debit, b.credit,
         GREATEST(b.closing, 0), GREATEST(-b.closing, 0)
    FROM gl_balance b JOIN gl_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no;
  GET DIAGNOSTICS p_rows = ROW_COUNT;
  SELECT COALESCE(SUM(debit), 0), COALESCE(SUM(credit), 0), COALESCE(SUM(closing_debit), 0),
         COALESCE(SUM(closing_credit), 0)
    INTO v_debit, v_credit, v_closing_debit, v_closing_credit
    FROM trial_balance WHERE batch_no = p_batch_no;
  IF v_debit <> v_credit THEN
    RAISE EXCEPTION 'trial balance %: debits % and credits % differ by %',
      p_batch_no, v_debit, v_credit, v_debit - v_credit;
  END IF;
  IF v_closing_debit <> v_closing_credit THEN
    RAISE EXCEPTION 'trial balance %: closing debits % and credits % differ by %',
      p_batch_no, v_closing_debit, v_closing_credit, v_closing_debit - v_closing_credit;
  END IF;
  p_total := v_closing_debit;
  RAISE NOTICE 'trial balance: % accounts, % on either side', p_rows, p_total;
END $$;

CREATE OR REPLACE PROCEDURE sp_income_statement(IN p_batch_no TEXT, INOUT p_net_income NUMERIC)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM income_statement WHERE batch_no = p_batch_no;
  INSERT INTO income_statement (batch_no, line_no, caption, amount)
  WITH s AS (
    SELECT a.statement_line, SUM(b.credit - b.debit) AS amount
      FROM gl_balance b JOIN gl_account a ON a.account_code = b.account_code
     WHERE b.batch_no = p_batch_no AND a.account_type IN ('R', 'X')
     GROUP BY a.statement_line),
  layout (line_no, caption, members) AS (
    VALUES (10, '营业收入 Revenue', 'REVENUE'),
           (20, '营业成本 Cost of sales', 'COGS'),
           (30, '毛利 Gross profit', 'REVENUE,COGS'),
           (40, '销售费用 Selling expenses', 'SELLING'),
           (50, '管理费用 Administrative expenses', 'ADMIN'),
           (60, '折旧 Depreciation', 'DEPRECIATION'),
           (70, '财务费用 Finance cost', 'FINANCE'),
           (80, '汇兑损益 Exchange differences', 'FX'),
           (90, '其他收益 Other income', 'OTHER'),
           (100, '利润总额 Profit before tax',
            'REVENUE,COGS,SELLING,ADMIN,DEPRECIATION,FINANCE,FX,OTHER'),
           (110, '所得税 Income tax', 'TAX'),
           (120, '净利润 Net income',
            'REVENUE,COGS,SELLING,ADMIN,DEPRECIATION,FINANCE,FX,OTHER,TAX'))
  SELECT p_batch_no, l.line_no, l.caption, COALESCE(SUM(s.amount), 0)
    FROM layout l
    LEFT JOIN s ON ',' || l.members || ',' LIKE '%,' || s.statement_line || ',%'
   GROUP BY l.line_no, l.caption;
  SELECT amount INTO p_net_income
    FROM income_statement WHERE batch_no = p_batch_no AND line_no = 120;
  RAISE NOTICE 'net income %', p_net_income;
END $$;

CREATE OR REPLACE PROCEDURE sp_balance_sheet(
  IN p_batch_no TEXT, IN p_net_income NUMERIC, INOUT p_total_assets NUMERIC)
LANGUAGE plpgsql AS $$
DECLARE
  v_claims NUMERIC(18,2);
BEGIN
  DELETE FROM balance_sheet WHERE batch_no = p_batch_no;
  INSERT INTO balance_sheet (batch_no, line_no, section, caption, amount)
  SELECT p_batch_no, ROW_NUMBER() OVER (ORDER BY b.account_code) * 10,
         CASE a.account_type WHEN 'A' THEN 'ASSET' WHEN 'L' THEN 'LIABILITY' ELSE 'EQUITY' END,
         a.account_name, CASE a.account_type WHEN 'A' THEN b.closing ELSE -b.closing END
    FROM gl_balance b JOIN gl_account a ON a.account_code = b.account_code
   WHERE b.batch_no = p_batch_no AND a.account_type IN ('A', 'L', 'E')
  UNION ALL
  SELECT p_batch_no, 9990, 'EQUITY', '本期利润 Profit of the period', p_net_income;
  SELECT COALESCE(SUM(CASE section WHEN 'ASSET' THEN amount END), 0),
         COALESCE(SUM(CASE section WHEN 'ASSET' THEN 0 ELSE amount END), 0)
    INTO p_total_assets, v_claims
    FROM balance_sheet WHERE batch_no = p_batch_no;
  IF p_total_assets <> v_claims THEN
    RAISE EXCEPTION 'balance sheet %: assets % and liabilities with equity % differ by %',
      p_batch_no, p_total_assets, v_claims, p_total_assets - v_claims;
  END IF;
  RAISE NOTICE 'total assets %', p_total_assets;
END $$;

CREATE OR REPLACE PROCEDURE sp_period_lock(IN p_batch_no TEXT, IN p_pack_lines BIGINT)
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE period SET status = 'LOCKED', pack_lines = p_pack_lines WHERE batch_no = p_batch_no;
  RAISE NOTICE 'period % is locked', p_batch_no;
END $$;

-- Sample data ------------------------------------------------------------------------------------
-- All amounts come from fixed formulas of a running number and the month: no clock, no chance.

DELETE FROM demo_number;
INSERT INTO demo_number (n)
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 120) SELECT n FROM c;

DELETE FROM gl_account;
INSERT INTO gl_account (account_code, account_name, account_type, statement_line) VALUES
  ('1002', '银行存款-人民币 Bank, CNY', 'A', 'ASSET'),
  ('1003', '银行存款-外币 Bank, foreign currency', 'A', 'ASSET'),
  ('1122', '应收账款 Accounts receivable', 'A', 'ASSET'),
  ('1123', '预付账款 Prepayments', 'A', 'ASSET'),
  ('1221', '关联方应收 Due from group companies', 'A', 'ASSET'),
  ('1405', '库存商品 Inventory', 'A', 'ASSET'),
  ('1601', '固定资产 Fixed assets', 'A', 'ASSET'),
  ('1602', '累计折旧 Accumulated depreciation', 'A', 'ASSET'),
  ('2202', '应付账款 Accounts payable', 'L', 'LIABILITY'),
  ('2211', '应付职工薪酬 Salaries payable', 'L', 'LIABILITY'),
  ('2221', '应交税费 Taxes payable', 'L', 'LIABILITY'),
  ('2241', '其他应付款 Accrued expenses', 'L', 'LIABILITY'),
  ('2242', '关联方应付 Due to group companies', 'L', 'LIABILITY'),
  ('2501', '长期借款 Long-term loan', 'L', 'LIABILITY'),
  ('4001', '实收资本 Share capital', 'E', 'EQUITY'),
  ('4104', '未分配利润 Retained earnings', 'E', 'EQUITY'),
  ('6001', '主营业务收入 Revenue', 'R', 'REVENUE'),
  ('6051', '其他业务收入 Group service income', 'R', 'OTHER'),
  ('6061', '汇兑损益 Exchange differences', 'R', 'FX'),
  ('6401', '主营业务成本 Cost of sales', 'X', 'COGS'),
  ('6601', '销售费用 Selling expenses', 'X', 'SELLING'),
  ('6602', '管理费用 Administrative expenses', 'X', 'ADMIN'),
  ('6603', '财务费用 Finance cost', 'X', 'FINANCE'),
  ('6604', '折旧费用 Depreciation', 'X', 'DEPRECIATION'),
  ('6801', '所得税费用 Income tax', 'X', 'TAX');

DELETE FROM fixed_asset;
INSERT INTO fixed_asset (asset_no, asset_name, cost, salvage, life_months, in_service)
SELECT n, CONCAT('asset ', n),
       20000 + (n * 3571) % 800 * 100,
       (20000 + (n * 3571) % 800 * 100) * 0.05,
       CASE n % 3 WHEN 0 THEN 36 WHEN 1 THEN 60 ELSE 120 END,
       CAST(DATE '2020-01-15' + (n * 7 % 54) * INTERVAL '1 month' AS DATE)
  FROM demo_number WHERE n <= 25;

DELETE FROM accrual_rule;
INSERT INTO accrual_rule (rule_no, description, expense_account, amount) VALUES
  (1, '电费 Electricity', '6602', 18650.40),
  (2, '审计费 Audit fee', '6602', 33333.33),
  (3, '销售奖金 Sales bonus', '6601', 86000.00),
  (4, '贷款利息 Loan interest', '6603', 17916.67),
  (5, '运费 Freight', '6601', 24508.15);

DELETE FROM prepayment;
INSERT INTO prepayment (prepay_no, description, expense_account, total, months, first_month) VALUES
  (1, '房租 Office rent', '6602', 720000.00, 12, '2024-01-01'),
  (2, '保险 Insurance', '6602', 86400.00, 24, '2023-08-01'),
  (3, '软件许可 Software licences', '6602', 100000.00, 36, '2023-03-01'),
  (4, '广告 Advertising', '6601', 250000.00, 7, '2024-01-01'),
  (5, '仓储 Warehouse rent', '6601', 360000.00, 12, '2024-06-01');

DELETE FROM period WHERE batch_no = :batch_no;
INSERT INTO period (batch_no, period_start, period_end, month_index, status)
SELECT :batch_no, d, CAST(d + INTERVAL '1 month' - INTERVAL '1 day' AS DATE),
       CAST(EXTRACT(YEAR FROM d) * 12 + EXTRACT(MONTH FROM d) AS INTEGER), 'OPEN'
  FROM (SELECT TO_DATE(CAST(:batch_no AS VARCHAR(50)) || '01', 'YYYYMMDD') AS d) x;

DELETE FROM fx_feed WHERE batch_no = :batch_no;
INSERT INTO fx_feed (batch_no, currency, avg_rate, closing_rate) VALUES
  (:batch_no, 'USD', 7.125400, 7.134600),
  (:batch_no, 'EUR', 7.734100, 7.722500),
  (:batch_no, 'HKD', 0.912300, 0.913400);

DELETE FROM ar_invoice WHERE batch_no = :batch_no;
INSERT INTO ar_invoice (batch_no, invoice_no, customer, invoice_date, currency, net, tax)
SELECT batch_no, n, CONCAT('customer ', n % 17 + 1), period_start + n % 28, currency, net,
       CASE currency WHEN 'CNY' THEN ROUND(net * 0.13, 2) ELSE 0 END
  FROM (SELECT p.batch_no, p.period_start, x.n, x.currency,
               CASE x.currency
                 WHEN 'CNY' THEN 1500000 + (x.n * 791933 + p.month_index % 12 * 101377) % 4500000
                 ELSE 80000 + (x.n * 79193 + p.month_index % 12 * 10137) % 600000
               END * 0.01 AS net
          FROM period p
          CROSS JOIN (SELECT n, CASE WHEN n % 8 = 0 THEN 'USD' WHEN n % 15 = 0 THEN 'EUR'
                                     ELSE 'CNY' END AS currency
                        FROM demo_number WHERE n <= 120) x
         WHERE p.batch_no = :batch_no) i;

DELETE FROM ap_invoice WHERE batch_no = :batch_no;
INSERT INTO ap_invoice
  (batch_no, invoice_no, supplier, invoice_date, cost_account, currency, net, tax)
SELECT batch_no, n, CONCAT('supplier ', n % 11 + 1), period_start + n % 28,
       CASE n % 4 WHEN 2 THEN '6601' WHEN 3 THEN '6602' ELSE '1405' END, currency, net,
       CASE currency WHEN 'CNY' THEN ROUND(net * 0.13, 2) ELSE 0 END
  FROM (SELECT p.batch_no, p.period_start, x.n, x.currency,
               CASE x.currency
                 WHEN 'CNY' THEN 300000 + (x.n * 613571 + p.month_index % 12 * 77711) % 2400000
                 ELSE 60000 + (x.n * 61357 + p.month_index % 12 * 7771) % 400000
               END * 0.01 AS net
          FROM period p
          CROSS JOIN (SELECT n, CASE WHEN n % 10 = 0 THEN 'USD' WHEN n % 13 = 0 THEN 'HKD'
                                     ELSE 'CNY' END AS currency
                        FROM demo_number WHERE n <= 80) x
         WHERE p.batch_no = :batch_no) i;

DELETE FROM bank_line WHERE batch_no = :batch_no;
INSERT INTO bank_line (batch_no, line_no, value_date, kind, currency, amount)
SELECT p.batch_no, n, p.period_start + n % 28,
       CASE WHEN n = 51 THEN 'SALARY' WHEN n % 10 = 0 THEN 'INTEREST' WHEN n % 10 = 9 THEN 'CHARGE'
            WHEN n % 10 >= 6 THEN 'PAYMENT' ELSE 'RECEIPT' END,
       CASE WHEN n % 10 IN (5, 8) THEN 'USD' ELSE 'CNY' END,
       CASE WHEN n = 51 THEN 56000000
            WHEN n % 10 = 0 THEN 5000 + (n * 1013) % 40000
            WHEN n % 10 = 9 THEN 1000 + (n * 97) % 9000
            WHEN n % 10 IN (5, 8) THEN 200000 + (n * 31337) % 900000
            WHEN n % 10 >= 6 THEN 800000 + (n * 321391) % 3000000
            ELSE 1000000 + (n * 521393) % 7000000 END * 0.01
  FROM period p CROSS JOIN demo_number
 WHERE p.batch_no = :batch_no AND n <= 51;

DELETE FROM payroll_line WHERE batch_no = :batch_no;
INSERT INTO payroll_line (batch_no, employee_no, department, gross)
SELECT :batch_no, n, CASE n % 3 WHEN 0 THEN 'SALES' WHEN 1 THEN 'ADMIN' ELSE 'LOGISTICS' END,
       9000 + (n * 1379) % 2100 * 10
  FROM demo_number WHERE n <= 40;

DELETE FROM stock_movement WHERE batch_no = :batch_no;
INSERT INTO stock_movement (batch_no, move_no, item, kind, quantity, unit_cost)
SELECT :batch_no, n, CONCAT('SKU-', n % 6 + 1),
       CASE WHEN n % 20 = 0 THEN 'GAIN' WHEN n % 10 = 0 THEN 'LOSS' ELSE 'ISSUE' END,
       CASE WHEN n % 10 = 0 THEN 1 + n % 3 ELSE 10 + (n * 17) % 90 END,
       (30000 + (n * 37973) % 60000) * 0.01
  FROM demo_number WHERE n <= 60;

DELETE FROM intercompany_charge WHERE batch_no = :batch_no;
INSERT INTO intercompany_charge (batch_no, charge_no, partner, direction, amount) VALUES
  (:batch_no, 1, 'Ocean Trading HK', 'OUT', 125000.00),
  (:batch_no, 2, 'Ocean Trading US', 'OUT', 88450.50),
  (:batch_no, 3, 'Ocean Trading DE', 'OUT', 64200.75),
  (:batch_no, 4, 'Ocean Group 总部', 'IN', 150000.00),
  (:batch_no, 5, 'Ocean IT services', 'IN', 43120.20);

DELETE FROM opening_balance WHERE batch_no = :batch_no;
INSERT INTO opening_balance (batch_no, account_code, currency, amount_fc, amount) VALUES
  (:batch_no, '1002', 'CNY', 6500000.00, 6500000.00),
  (:batch_no, '1003', 'USD', 420000.00, 2993256.00),
  (:batch_no, '1122', 'CNY', 5200000.00, 5200000.00),
  (:batch_no, '1122', 'USD', 180000.00, 1282824.00),
  (:batch_no, '1122', 'EUR', 60000.00, 459600.00),
  (:batch_no, '1221', 'CNY', 350000.00, 350000.00),
  (:batch_no, '1405', 'CNY', 4000000.00, 4000000.00),
  (:batch_no, '2202', 'CNY', -3100000.00, -3100000.00),
  (:batch_no, '2202', 'USD', -95000.00, -677046.00),
  (:batch_no, '2202', 'HKD', -210000.00, -191730.00),
  (:batch_no, '2211', 'CNY', -560000.00, -560000.00),
  (:batch_no, '2221', 'CNY', -415000.00, -415000.00),
  (:batch_no, '2241', 'CNY', -268000.00, -268000.00),
  (:batch_no, '2242', 'CNY', -190000.00, -190000.00),
  (:batch_no, '2501', 'CNY', -5000000.00, -5000000.00),
  (:batch_no, '4001', 'CNY', -10000000.00, -10000000.00);

-- Fixed assets, their depreciation so far, and what is left of the prepayments.
INSERT INTO opening_balance (batch_no, account_code, currency, amount_fc, amount)
SELECT :batch_no, account_code, 'CNY', SUM(amount), SUM(amount)
  FROM (SELECT '1601' AS account_code, f.cost AS amount
          FROM fixed_asset f CROSS JOIN period p
         WHERE p.batch_no = :batch_no AND f.in_service < p.period_start
        UNION ALL
        SELECT '1602',
               -CASE WHEN gone >= life_months THEN base
                     ELSE ROUND(base / life_months, 2) * gone END
          FROM (SELECT f.life_months, f.cost - f.salvage AS base,
                       p.month_index - 1 - (EXTRACT(YEAR FROM f.in_service) * 12
                                            + EXTRACT(MONTH FROM f.in_service)) AS gone
                  FROM fixed_asset f CROSS JOIN period p WHERE p.batch_no = :batch_no) d
         WHERE gone >= 0
        UNION ALL
        SELECT '1123',
               CASE WHEN gone >= months THEN 0 ELSE total - ROUND(total / months, 2) * gone END
          FROM (SELECT f.total, f.months,
                       p.month_index - (EXTRACT(YEAR FROM f.first_month) * 12
                                        + EXTRACT(MONTH FROM f.first_month)) AS gone
                  FROM prepayment f CROSS JOIN period p WHERE p.batch_no = :batch_no) d
         WHERE gone >= 0) o
 GROUP BY account_code;

-- Retained earnings are what makes the opening balances add up to zero.
INSERT INTO opening_balance (batch_no, account_code, currency, amount_fc, amount)
SELECT batch_no, '4104', 'CNY', -SUM(amount), -SUM(amount)
  FROM opening_balance WHERE batch_no = :batch_no GROUP BY batch_no;

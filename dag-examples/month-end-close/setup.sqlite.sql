-- Demo set-up for SQLite: tables and sample data of one batch; the bodies that stand in for
-- procedures are in procedures.sqlite.yaml.
--
-- Only for the demo. A real team has these tables already and leaves the job DEMO_SETUP out. It may
-- run any number of times: tables are made if missing, and the sample data of the batch deleted and
-- loaded again; other batches stay as they are.
--
-- Signs: in opening_balance, gl_balance and amount_fc_cents a debit is positive, a credit negative.
-- SQLite has no exact decimals, so money is an INTEGER of cents (..._cents) and a rate an INTEGER of
-- millionths (..._e6); all arithmetic is of integers and rounds halves away from zero, as ROUND()
-- does on the other databases. The report tables also show plain amounts ('1234.50') in generated
-- columns, under the names the other databases use.

-- Master data ------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS demo_number (n INTEGER PRIMARY KEY);

CREATE TABLE IF NOT EXISTS period (
  batch_no     TEXT PRIMARY KEY,
  period_start TEXT NOT NULL,
  period_end   TEXT NOT NULL,
  month_index  INTEGER NOT NULL,             -- year * 12 + month
  status       TEXT NOT NULL,         -- OPEN, LOCKED
  pack_lines   INTEGER
);

CREATE TABLE IF NOT EXISTS gl_account (
  account_code TEXT PRIMARY KEY,
  account_name TEXT NOT NULL,
  account_type TEXT NOT NULL,             -- Asset, Liability, Equity, Revenue, eXpense
  statement_line TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS fixed_asset (
  asset_no    INTEGER PRIMARY KEY,
  asset_name  TEXT NOT NULL,
  cost_cents INTEGER NOT NULL,
  salvage_cents INTEGER NOT NULL,
  life_months INTEGER NOT NULL,
  in_service  TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS accrual_rule (
  rule_no         INTEGER PRIMARY KEY,
  description     TEXT NOT NULL,
  expense_account TEXT NOT NULL,
  amount_cents INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS prepayment (
  prepay_no       INTEGER PRIMARY KEY,
  description     TEXT NOT NULL,
  expense_account TEXT NOT NULL,
  total_cents INTEGER NOT NULL,
  months          INTEGER NOT NULL,
  first_month     TEXT NOT NULL
);

-- What the source systems deliver for a period ---------------------------------------------------

CREATE TABLE IF NOT EXISTS opening_balance (
  batch_no     TEXT NOT NULL,
  account_code TEXT NOT NULL,
  currency     TEXT NOT NULL,
  amount_fc_cents INTEGER NOT NULL,
  amount_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, account_code, currency)
);

CREATE TABLE IF NOT EXISTS fx_feed (
  batch_no     TEXT NOT NULL,
  currency     TEXT NOT NULL,
  avg_rate_e6 INTEGER NOT NULL,
  closing_rate_e6 INTEGER NOT NULL,
  PRIMARY KEY (batch_no, currency)
);

CREATE TABLE IF NOT EXISTS ar_invoice (
  batch_no     TEXT NOT NULL,
  invoice_no   INTEGER NOT NULL,
  customer     TEXT NOT NULL,
  invoice_date TEXT NOT NULL,
  currency     TEXT NOT NULL,
  net_cents INTEGER NOT NULL,
  tax_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, invoice_no)
);

CREATE TABLE IF NOT EXISTS ap_invoice (
  batch_no     TEXT NOT NULL,
  invoice_no   INTEGER NOT NULL,
  supplier     TEXT NOT NULL,
  invoice_date TEXT NOT NULL,
  cost_account TEXT NOT NULL,
  currency     TEXT NOT NULL,
  net_cents INTEGER NOT NULL,
  tax_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, invoice_no)
);

CREATE TABLE IF NOT EXISTS bank_line (
  batch_no   TEXT NOT NULL,
  line_no    INTEGER NOT NULL,
  value_date TEXT NOT NULL,
  kind       TEXT NOT NULL,           -- RECEIPT, PAYMENT, SALARY, CHARGE, INTEREST
  currency   TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, line_no)
);

CREATE TABLE IF NOT EXISTS payroll_line (
  batch_no    TEXT NOT NULL,
  employee_no INTEGER NOT NULL,
  department  TEXT NOT NULL,
  gross_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, employee_no)
);

CREATE TABLE IF NOT EXISTS stock_movement (
  batch_no  TEXT NOT NULL,
  move_no   INTEGER NOT NULL,
  item      TEXT NOT NULL,
  kind      TEXT NOT NULL,            -- ISSUE, LOSS, GAIN
  quantity  INTEGER NOT NULL,
  unit_cost_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, move_no)
);

CREATE TABLE IF NOT EXISTS intercompany_charge (
  batch_no  TEXT NOT NULL,
  charge_no INTEGER NOT NULL,
  partner   TEXT NOT NULL,
  direction TEXT NOT NULL,             -- OUT: we charge; IN: we are charged
  amount_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, charge_no)
);

-- What the close makes ---------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS fx_rate (
  batch_no     TEXT NOT NULL,
  currency     TEXT NOT NULL,
  avg_rate_e6 INTEGER NOT NULL,
  closing_rate_e6 INTEGER NOT NULL,
  PRIMARY KEY (batch_no, currency)
);

CREATE TABLE IF NOT EXISTS journal_line (
  batch_no     TEXT NOT NULL,
  journal_code TEXT NOT NULL,
  line_no      INTEGER NOT NULL,
  account_code TEXT NOT NULL,
  currency     TEXT NOT NULL,
  amount_fc_cents INTEGER NOT NULL,
  debit_cents INTEGER NOT NULL,
  credit_cents INTEGER NOT NULL,
  memo         TEXT,
  debit TEXT GENERATED ALWAYS AS (printf('%.2f', debit_cents / 100.0)) VIRTUAL,
  credit TEXT GENERATED ALWAYS AS (printf('%.2f', credit_cents / 100.0)) VIRTUAL,
  PRIMARY KEY (batch_no, journal_code, line_no)
);

CREATE TABLE IF NOT EXISTS gl_balance (
  batch_no     TEXT NOT NULL,
  account_code TEXT NOT NULL,
  opening_cents INTEGER NOT NULL,
  debit_cents INTEGER NOT NULL,
  credit_cents INTEGER NOT NULL,
  closing_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, account_code)
);

CREATE TABLE IF NOT EXISTS trial_balance (
  batch_no       TEXT NOT NULL,
  account_code   TEXT NOT NULL,
  account_name   TEXT NOT NULL,
  debit_cents INTEGER NOT NULL,
  credit_cents INTEGER NOT NULL,
  closing_debit_cents INTEGER NOT NULL,
  closing_credit_cents INTEGER NOT NULL,
  debit TEXT GENERATED ALWAYS AS (printf('%.2f', debit_cents / 100.0)) VIRTUAL,
  credit TEXT GENERATED ALWAYS AS (printf('%.2f', credit_cents / 100.0)) VIRTUAL,
  closing_debit TEXT GENERATED ALWAYS AS (printf('%.2f', closing_debit_cents / 100.0)) VIRTUAL,
  closing_credit TEXT GENERATED ALWAYS AS (printf('%.2f', closing_credit_cents / 100.0)) VIRTUAL,
  PRIMARY KEY (batch_no, account_code)
);

CREATE TABLE IF NOT EXISTS income_statement (
  batch_no TEXT NOT NULL,
  line_no  INTEGER NOT NULL,
  caption  TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  amount TEXT GENERATED ALWAYS AS (printf('%.2f', amount_cents / 100.0)) VIRTUAL,
  PRIMARY KEY (batch_no, line_no)
);

CREATE TABLE IF NOT EXISTS balance_sheet (
  batch_no TEXT NOT NULL,
  line_no  INTEGER NOT NULL,
  section  TEXT NOT NULL,             -- ASSET, LIABILITY, EQUITY
  caption  TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  amount TEXT GENERATED ALWAYS AS (printf('%.2f', amount_cents / 100.0)) VIRTUAL,
  PRIMARY KEY (batch_no, line_no)
);

CREATE TABLE IF NOT EXISTS control_check (
  batch_no     TEXT NOT NULL,
  control_code TEXT NOT NULL,
  expected_cents INTEGER NOT NULL,
  actual_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, control_code),
  CONSTRAINT control_totals_must_agree CHECK (expected_cents = actual_cents)
);

-- SQLite cannot raise an error outside a trigger. A body that must be able to fail writes what it
-- found here, and the constraint whose name says what is wrong refuses the row.
CREATE TABLE IF NOT EXISTS close_gate (
  batch_no TEXT NOT NULL,
  gate     TEXT NOT NULL,
  left_cents  INTEGER,
  right_cents INTEGER,
  PRIMARY KEY (batch_no, gate),
  CONSTRAINT "the period is not known or not open"
    CHECK (gate <> 'PERIOD_OPEN' OR left_cents IS right_cents),
  CONSTRAINT "a currency in use has no rate"
    CHECK (gate <> 'FX_COMPLETE' OR left_cents IS right_cents),
  CONSTRAINT "trial balance: debits and credits differ"
    CHECK (gate NOT IN ('TB_TURNOVER', 'TB_CLOSING') OR left_cents IS right_cents),
  CONSTRAINT "balance sheet: assets differ from liabilities with equity"
    CHECK (gate <> 'BALANCE_SHEET' OR left_cents IS right_cents)
);

CREATE TABLE IF NOT EXISTS journal_stat (
  batch_no     TEXT NOT NULL,
  journal_code TEXT NOT NULL,
  line_count   INTEGER NOT NULL,
  PRIMARY KEY (batch_no, journal_code)
);

CREATE TABLE IF NOT EXISTS close_figure (
  batch_no TEXT NOT NULL,
  figure   TEXT NOT NULL,
  value    TEXT NOT NULL,             -- exact decimal text, the same on every database
  PRIMARY KEY (batch_no, figure)
);

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
INSERT INTO fixed_asset (asset_no, asset_name, cost_cents, salvage_cents, life_months, in_service)
SELECT n, 'asset ' || n,
       (20000 + (n * 3571) % 800 * 100) * 100,
       (20000 + (n * 3571) % 800 * 100) * 5,
       CASE n % 3 WHEN 0 THEN 36 WHEN 1 THEN 60 ELSE 120 END,
       date('2020-01-15', '+' || (n * 7 % 54) || ' months')
  FROM demo_number WHERE n <= 25;

DELETE FROM accrual_rule;
INSERT INTO accrual_rule (rule_no, description, expense_account, amount_cents) VALUES
  (1, '电费 Electricity', '6602', 1865040),
  (2, '审计费 Audit fee', '6602', 3333333),
  (3, '销售奖金 Sales bonus', '6601', 8600000),
  (4, '贷款利息 Loan interest', '6603', 1791667),
  (5, '运费 Freight', '6601', 2450815);

DELETE FROM prepayment;
INSERT INTO prepayment
  (prepay_no, description, expense_account, total_cents, months, first_month) VALUES
  (1, '房租 Office rent', '6602', 72000000, 12, '2024-01-01'),
  (2, '保险 Insurance', '6602', 8640000, 24, '2023-08-01'),
  (3, '软件许可 Software licences', '6602', 10000000, 36, '2023-03-01'),
  (4, '广告 Advertising', '6601', 25000000, 7, '2024-01-01'),
  (5, '仓储 Warehouse rent', '6601', 36000000, 12, '2024-06-01');

DELETE FROM period WHERE batch_no = :batch_no;
INSERT INTO period (batch_no, period_start, period_end, month_index, status)
SELECT :batch_no, d, date(d, '+1 month', '-1 day'),
       strftime('%Y', d) * 12 + strftime('%m', d), 'OPEN'
  FROM (SELECT substr(:batch_no, 1, 4) || '-' || substr(:batch_no, 5, 2) || '-01' AS d) x;

DELETE FROM fx_feed WHERE batch_no = :batch_no;
INSERT INTO fx_feed (batch_no, currency, avg_rate_e6, closing_rate_e6) VALUES
  (:batch_no, 'USD', 7125400, 7134600),
  (:batch_no, 'EUR', 7734100, 7722500),
  (:batch_no, 'HKD', 912300, 913400);

DELETE FROM ar_invoice WHERE batch_no = :batch_no;
INSERT INTO ar_invoice (batch_no, invoice_no, customer, invoice_date, currency, net_cents, tax_cents)
SELECT batch_no, n, 'customer ' || (n % 17 + 1), date(period_start, '+' || (n % 28) || ' days'),
       currency, net_cents,
       CASE currency WHEN 'CNY' THEN (net_cents * 13 + 50) / 100 ELSE 0 END
  FROM (SELECT p.batch_no, p.period_start, x.n, x.currency,
               CASE x.currency
                 WHEN 'CNY' THEN 1500000 + (x.n * 791933 + p.month_index % 12 * 101377) % 4500000
                 ELSE 80000 + (x.n * 79193 + p.month_index % 12 * 10137) % 600000
               END AS net_cents
          FROM period p
          CROSS JOIN (SELECT n, CASE WHEN n % 8 = 0 THEN 'USD' WHEN n % 15 = 0 THEN 'EUR'
                                     ELSE 'CNY' END AS currency
                        FROM demo_number WHERE n <= 120) x
         WHERE p.batch_no = :batch_no) i;

DELETE FROM ap_invoice WHERE batch_no = :batch_no;
INSERT INTO ap_invoice
  (batch_no, invoice_no, supplier, invoice_date, cost_account, currency, net_cents, tax_cents)
SELECT batch_no, n, 'supplier ' || (n % 11 + 1), date(period_start, '+' || (n % 28) || ' days'),
       CASE n % 4 WHEN 2 THEN '6601' WHEN 3 THEN '6602' ELSE '1405' END, currency, net_cents,
       CASE currency WHEN 'CNY' THEN (net_cents * 13 + 50) / 100 ELSE 0 END
  FROM (SELECT p.batch_no, p.period_start, x.n, x.currency,
               CASE x.currency
                 WHEN 'CNY' THEN 300000 + (x.n * 613571 + p.month_index % 12 * 77711) % 2400000
                 ELSE 60000 + (x.n * 61357 + p.month_index % 12 * 7771) % 400000
               END AS net_cents
          FROM period p
          CROSS JOIN (SELECT n, CASE WHEN n % 10 = 0 THEN 'USD' WHEN n % 13 = 0 THEN 'HKD'
                                     ELSE 'CNY' END AS currency
                        FROM demo_number WHERE n <= 80) x
         WHERE p.batch_no = :batch_no) i;

DELETE FROM bank_line WHERE batch_no = :batch_no;
INSERT INTO bank_line (batch_no, line_no, value_date, kind, currency, amount_cents)
SELECT p.batch_no, n, date(p.period_start, '+' || (n % 28) || ' days'),
       CASE WHEN n = 51 THEN 'SALARY' WHEN n % 10 = 0 THEN 'INTEREST' WHEN n % 10 = 9 THEN 'CHARGE'
            WHEN n % 10 >= 6 THEN 'PAYMENT' ELSE 'RECEIPT' END,
       CASE WHEN n % 10 IN (5, 8) THEN 'USD' ELSE 'CNY' END,
       CASE WHEN n = 51 THEN 56000000
            WHEN n % 10 = 0 THEN 5000 + (n * 1013) % 40000
            WHEN n % 10 = 9 THEN 1000 + (n * 97) % 9000
            WHEN n % 10 IN (5, 8) THEN 200000 + (n * 31337) % 900000
            WHEN n % 10 >= 6 THEN 800000 + (n * 321391) % 3000000
            ELSE 1000000 + (n * 521393) % 7000000 END
  FROM period p CROSS JOIN demo_number
 WHERE p.batch_no = :batch_no AND n <= 51;

DELETE FROM payroll_line WHERE batch_no = :batch_no;
INSERT INTO payroll_line (batch_no, employee_no, department, gross_cents)
SELECT :batch_no, n, CASE n % 3 WHEN 0 THEN 'SALES' WHEN 1 THEN 'ADMIN' ELSE 'LOGISTICS' END,
       900000 + (n * 1379) % 2100 * 1000
  FROM demo_number WHERE n <= 40;

DELETE FROM stock_movement WHERE batch_no = :batch_no;
INSERT INTO stock_movement (batch_no, move_no, item, kind, quantity, unit_cost_cents)
SELECT :batch_no, n, 'SKU-' || (n % 6 + 1),
       CASE WHEN n % 20 = 0 THEN 'GAIN' WHEN n % 10 = 0 THEN 'LOSS' ELSE 'ISSUE' END,
       CASE WHEN n % 10 = 0 THEN 1 + n % 3 ELSE 10 + (n * 17) % 90 END,
       30000 + (n * 37973) % 60000
  FROM demo_number WHERE n <= 60;

DELETE FROM intercompany_charge WHERE batch_no = :batch_no;
INSERT INTO intercompany_charge (batch_no, charge_no, partner, direction, amount_cents) VALUES
  (:batch_no, 1, 'Ocean Trading HK', 'OUT', 12500000),
  (:batch_no, 2, 'Ocean Trading US', 'OUT', 8845050),
  (:batch_no, 3, 'Ocean Trading DE', 'OUT', 6420075),
  (:batch_no, 4, 'Ocean Group 总部', 'IN', 15000000),
  (:batch_no, 5, 'Ocean IT services', 'IN', 4312020);

DELETE FROM opening_balance WHERE batch_no = :batch_no;
INSERT INTO opening_balance (batch_no, account_code, currency, amount_fc_cents, amount_cents) VALUES
  (:batch_no, '1002', 'CNY', 650000000, 650000000),
  (:batch_no, '1003', 'USD', 42000000, 299325600),
  (:batch_no, '1122', 'CNY', 520000000, 520000000),
  (:batch_no, '1122', 'USD', 18000000, 128282400),
  (:batch_no, '1122', 'EUR', 6000000, 45960000),
  (:batch_no, '1221', 'CNY', 35000000, 35000000),
  (:batch_no, '1405', 'CNY', 400000000, 400000000),
  (:batch_no, '2202', 'CNY', -310000000, -310000000),
  (:batch_no, '2202', 'USD', -9500000, -67704600),
  (:batch_no, '2202', 'HKD', -21000000, -19173000),
  (:batch_no, '2211', 'CNY', -56000000, -56000000),
  (:batch_no, '2221', 'CNY', -41500000, -41500000),
  (:batch_no, '2241', 'CNY', -26800000, -26800000),
  (:batch_no, '2242', 'CNY', -19000000, -19000000),
  (:batch_no, '2501', 'CNY', -500000000, -500000000),
  (:batch_no, '4001', 'CNY', -1000000000, -1000000000);

-- Fixed assets, their depreciation so far, and what is left of the prepayments.
INSERT INTO opening_balance (batch_no, account_code, currency, amount_fc_cents, amount_cents)
SELECT :batch_no, account_code, 'CNY', SUM(amount_cents), SUM(amount_cents)
  FROM (SELECT '1601' AS account_code, f.cost_cents AS amount_cents
          FROM fixed_asset f CROSS JOIN period p
         WHERE p.batch_no = :batch_no AND f.in_service < p.period_start
        UNION ALL
        SELECT '1602',
               -CASE WHEN gone >= life_months THEN base
                     ELSE (2 * base + life_months) / (2 * life_months) * gone END
          FROM (SELECT f.life_months, f.cost_cents - f.salvage_cents AS base,
                       p.month_index - 1 - (strftime('%Y', f.in_service) * 12
                                            + strftime('%m', f.in_service)) AS gone
                  FROM fixed_asset f CROSS JOIN period p WHERE p.batch_no = :batch_no) d
         WHERE gone >= 0
        UNION ALL
        SELECT '1123',
               CASE WHEN gone >= months THEN 0
                    ELSE total_cents - (2 * total_cents + months) / (2 * months) * gone END
          FROM (SELECT f.total_cents, f.months,
                       p.month_index - (strftime('%Y', f.first_month) * 12
                                        + strftime('%m', f.first_month)) AS gone
                  FROM prepayment f CROSS JOIN period p WHERE p.batch_no = :batch_no) d
         WHERE gone >= 0) o
 GROUP BY account_code;

-- Retained earnings are what makes the opening balances add up to zero.
INSERT INTO opening_balance (batch_no, account_code, currency, amount_fc_cents, amount_cents)
SELECT batch_no, '4104', 'CNY', -SUM(amount_cents), -SUM(amount_cents)
  FROM opening_balance WHERE batch_no = :batch_no GROUP BY batch_no;

-- Demo set-up for SQLite: tables and sample data of one quarter; the bodies that stand in for
-- procedures are in procedures.sqlite.yaml.
--
-- Only for the demo. A real team has these tables already and leaves the job QUARTER_SETUP out. It may
-- run any number of times; other quarters stay as they are.
--
-- SQLite has no exact decimals, so money is an INTEGER of cents (..._cents), a rate of millionths
-- (..._e6), a share of ten-thousandths (..._e4).
--
-- Signs: a debit is positive, a credit negative; a balanced set of amounts adds up to zero.
-- Simplified: share capital and retained earnings are translated at one historical rate a company.

CREATE TABLE IF NOT EXISTS group_account (
  account_code TEXT PRIMARY KEY,
  account_name TEXT NOT NULL,
  account_type TEXT NOT NULL              -- Asset, Liability, Equity, Revenue, eXpense, Minority's profit
);

CREATE TABLE IF NOT EXISTS group_company (
  entity          TEXT PRIMARY KEY,
  entity_name     TEXT NOT NULL,
  currency        TEXT NOT NULL,
  share_e4 INTEGER NOT NULL,     -- of the group
  investment_cost_cents INTEGER NOT NULL     -- in the parent's books; 0 for the parent
);

CREATE TABLE IF NOT EXISTS group_rate (
  batch_no        TEXT NOT NULL,
  currency        TEXT NOT NULL,
  rate_date       TEXT NOT NULL,
  avg_rate_e6 INTEGER NOT NULL,
  closing_rate_e6 INTEGER NOT NULL,
  historical_rate_e6 INTEGER NOT NULL,
  PRIMARY KEY (batch_no, currency)
);

CREATE TABLE IF NOT EXISTS entity_balance (
  batch_no     TEXT NOT NULL,
  entity       TEXT NOT NULL,
  account_code TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,       -- in the company's own currency
  PRIMARY KEY (batch_no, entity, account_code)
);

CREATE TABLE IF NOT EXISTS translated_balance (
  batch_no     TEXT NOT NULL,
  entity       TEXT NOT NULL,
  account_code TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,       -- in group currency
  PRIMARY KEY (batch_no, entity, account_code)
);

CREATE TABLE IF NOT EXISTS group_entry (
  batch_no     TEXT NOT NULL,
  step         TEXT NOT NULL,         -- IC, INV, NCI
  entity       TEXT NOT NULL,
  account_code TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,       -- in group currency
  PRIMARY KEY (batch_no, step, entity, account_code)
);

CREATE TABLE IF NOT EXISTS package_status (
  batch_no   TEXT NOT NULL,
  entity     TEXT NOT NULL,
  line_count INTEGER NOT NULL,
  PRIMARY KEY (batch_no, entity)
);

CREATE TABLE IF NOT EXISTS group_balance (
  batch_no     TEXT NOT NULL,
  account_code TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  PRIMARY KEY (batch_no, account_code)
);

CREATE TABLE IF NOT EXISTS group_statement (
  batch_no  TEXT NOT NULL,
  statement TEXT NOT NULL,            -- INCOME, BALANCE
  line_no   INTEGER NOT NULL,
  caption   TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  amount TEXT GENERATED ALWAYS AS (printf('%.2f', amount_cents / 100.0)) VIRTUAL,
  PRIMARY KEY (batch_no, statement, line_no)
);

-- SQLite cannot raise an error outside a trigger. A body that must be able to fail writes what it
-- found here, and the constraint whose name says what is wrong refuses the row.
CREATE TABLE IF NOT EXISTS group_gate (
  batch_no    TEXT NOT NULL,
  gate        TEXT NOT NULL,
  entity      TEXT NOT NULL DEFAULT '',
  left_value  INTEGER,
  right_value INTEGER,
  PRIMARY KEY (batch_no, gate, entity),
  CONSTRAINT "a company has no rate of the last day of the quarter"
    CHECK (gate <> 'RATES' OR left_value IS right_value),
  CONSTRAINT "the trial balance of a company does not balance"
    CHECK (gate <> 'ENTITY_BALANCE' OR left_value IS right_value),
  CONSTRAINT "intercompany balances differ by more than the tolerance"
    CHECK (gate <> 'IC_MATCH' OR ABS(left_value) <= right_value),
  CONSTRAINT "not every company has delivered"
    CHECK (gate <> 'PACKAGES' OR left_value IS right_value),
  CONSTRAINT "the consolidated trial balance is not zero"
    CHECK (gate <> 'TRIAL_BALANCE' OR left_value IS right_value),
  CONSTRAINT "the consolidated balance sheet does not balance"
    CHECK (gate <> 'GROUP_BALANCE_SHEET' OR left_value IS right_value)
);

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
INSERT INTO group_company (entity, entity_name, currency, share_e4, investment_cost_cents) VALUES
  ('CN01', 'Ocean Trading 上海', 'CNY', 10000, 0),
  ('US01', 'Ocean Trading US', 'USD', 10000, 540000000),
  ('DE01', 'Ocean Trading DE', 'EUR', 8000, 390000000);

DELETE FROM group_rate WHERE batch_no = :batch_no;
INSERT INTO group_rate
  (batch_no, currency, rate_date, avg_rate_e6, closing_rate_e6, historical_rate_e6) VALUES
  (:batch_no, 'CNY', :business_date, 1000000, 1000000, 1000000),
  (:batch_no, 'USD', :business_date, 7146400, 7007400, 6900000),
  (:batch_no, 'EUR', :business_date, 7851200, 7826700, 7500000);

DELETE FROM entity_balance WHERE batch_no = :batch_no;
INSERT INTO entity_balance (batch_no, entity, account_code, amount_cents) VALUES
  (:batch_no, 'CN01', '1000', 320000000),
  (:batch_no, 'CN01', '1100', 245000000),
  (:batch_no, 'CN01', '1200', 142000000),
  (:batch_no, 'CN01', '1400', 180000000),
  (:batch_no, 'CN01', '1500', 930000000),
  (:batch_no, 'CN01', '1600', 560000000),
  (:batch_no, 'CN01', '2000', -210000000),
  (:batch_no, 'CN01', '2500', -400000000),
  (:batch_no, 'CN01', '3000', -1200000000),
  (:batch_no, 'CN01', '3100', -331000000),
  (:batch_no, 'CN01', '4000', -860000000),
  (:batch_no, 'CN01', '4100', -142000000),
  (:batch_no, 'CN01', '5000', 520000000),
  (:batch_no, 'CN01', '6000', 215000000),
  (:batch_no, 'CN01', '7000', 31000000),
  (:batch_no, 'US01', '1000', 41000000),
  (:batch_no, 'US01', '1100', 36500035),
  (:batch_no, 'US01', '1400', 24000000),
  (:batch_no, 'US01', '1600', 62000000),
  (:batch_no, 'US01', '2000', -27500035),
  (:batch_no, 'US01', '2100', -11840000),
  (:batch_no, 'US01', '3000', -70000000),
  (:batch_no, 'US01', '3100', -45450000),
  (:batch_no, 'US01', '4000', -98000077),
  (:batch_no, 'US01', '5000', 50500077),
  (:batch_no, 'US01', '5100', 11840000),
  (:batch_no, 'US01', '6000', 24050000),
  (:batch_no, 'US01', '7000', 2900000),
  (:batch_no, 'DE01', '1000', 22000000),
  (:batch_no, 'DE01', '1100', 19000019),
  (:batch_no, 'DE01', '1400', 13000000),
  (:batch_no, 'DE01', '1600', 48000000),
  (:batch_no, 'DE01', '2000', -14200019),
  (:batch_no, 'DE01', '2100', -7590000),
  (:batch_no, 'DE01', '2500', -9000000),
  (:batch_no, 'DE01', '3000', -40000000),
  (:batch_no, 'DE01', '3100', -24800000),
  (:batch_no, 'DE01', '4000', -61000041),
  (:batch_no, 'DE01', '5000', 30000041),
  (:batch_no, 'DE01', '5100', 7590000),
  (:batch_no, 'DE01', '6000', 14800000),
  (:batch_no, 'DE01', '7000', 2200000);

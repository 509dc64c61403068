-- Accruals: the expenses of the period for which no invoice has come yet.
DELETE FROM journal_line WHERE batch_no = :batch_no AND journal_code = 'ACCR';

INSERT INTO journal_line
  (batch_no, journal_code, line_no, account_code, currency, amount_fc_cents, debit_cents,
   credit_cents, memo)
SELECT :batch_no, 'ACCR', rule_no * 10 + 1, expense_account, 'CNY', amount_cents,
       amount_cents, 0, description
  FROM accrual_rule
UNION ALL
SELECT :batch_no, 'ACCR', rule_no * 10 + 2, '2241', 'CNY', -amount_cents, 0,
       amount_cents, description
  FROM accrual_rule;

SELECT COUNT(*) AS journal_lines, printf('%.2f', SUM(debit_cents) / 100.0) AS accrued
  FROM journal_line WHERE batch_no = :batch_no AND journal_code = 'ACCR';

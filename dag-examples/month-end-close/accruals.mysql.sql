-- Accruals: the expenses of the period for which no invoice has come yet.
CALL sp_clear_journal(:batch_no, 'ACCR');

INSERT INTO journal_line
  (batch_no, journal_code, line_no, account_code, currency, amount_fc, debit, credit, memo)
SELECT :batch_no, 'ACCR', rule_no * 10 + 1, expense_account, 'CNY', amount, amount, 0, description
  FROM accrual_rule
UNION ALL
SELECT :batch_no, 'ACCR', rule_no * 10 + 2, '2241', 'CNY', -amount, 0, amount, description
  FROM accrual_rule;

SELECT COUNT(*) AS journal_lines, SUM(debit) AS accrued
  FROM journal_line WHERE batch_no = :batch_no AND journal_code = 'ACCR';

-- What the sub-ledger jobs reported against what the journal holds; the table's CHECK refuses a
-- row in which the two differ, which fails the job.
DELETE FROM control_check WHERE batch_no = :batch_no AND control_code IN ('AP', 'AR');

INSERT INTO control_check (batch_no, control_code, expected, actual)
SELECT :batch_no, 'AP', CAST(:ap_total AS DECIMAL(18,2)), COALESCE(SUM(credit), 0)
  FROM journal_line
 WHERE batch_no = :batch_no AND journal_code = 'AP' AND account_code = '2202';

INSERT INTO control_check (batch_no, control_code, expected, actual)
SELECT :batch_no, 'AR', CAST(:ar_total AS DECIMAL(18,2)), COALESCE(SUM(debit), 0)
  FROM journal_line
 WHERE batch_no = :batch_no AND journal_code = 'AR' AND account_code = '1122';

SELECT control_code, expected, actual
  FROM control_check WHERE batch_no = :batch_no ORDER BY control_code;

-- The figures that leave the close, as exact decimal text: the same query and the same text on
-- every database.
DELETE FROM close_figure WHERE batch_no = :batch_no;

INSERT INTO close_figure (batch_no, figure, value)
SELECT :batch_no, figure, CAST(CAST(amount AS DECIMAL(18,2)) AS CHAR)
  FROM (SELECT 'tb_debit' AS figure, SUM(debit) AS amount
          FROM trial_balance WHERE batch_no = :batch_no
        UNION ALL SELECT 'tb_credit', SUM(credit)
          FROM trial_balance WHERE batch_no = :batch_no
        UNION ALL SELECT 'tb_closing_debit', SUM(closing_debit)
          FROM trial_balance WHERE batch_no = :batch_no
        UNION ALL SELECT 'tb_closing_credit', SUM(closing_credit)
          FROM trial_balance WHERE batch_no = :batch_no
        UNION ALL SELECT CASE line_no WHEN 10 THEN 'revenue' WHEN 30 THEN 'gross_profit'
                                      WHEN 80 THEN 'exchange_differences'
                                      WHEN 100 THEN 'profit_before_tax' WHEN 110 THEN 'income_tax'
                                      ELSE 'net_income' END, amount
          FROM income_statement
         WHERE batch_no = :batch_no AND line_no IN (10, 30, 80, 100, 110, 120)
        UNION ALL SELECT CASE section WHEN 'ASSET' THEN 'total_assets'
                                      WHEN 'LIABILITY' THEN 'total_liabilities'
                                      ELSE 'total_equity' END, SUM(amount)
          FROM balance_sheet WHERE batch_no = :batch_no GROUP BY section) f;

SELECT figure, value FROM close_figure WHERE batch_no = :batch_no ORDER BY figure;

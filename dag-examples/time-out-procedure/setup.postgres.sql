-- Demo procedures for PostgreSQL; they touch no table.
CREATE OR REPLACE PROCEDURE sp_demo_slow(IN p_batch_no TEXT, INOUT p_turns BIGINT)
LANGUAGE plpgsql AS $$
BEGIN
  p_turns := 0;
  WHILE p_turns < 600 LOOP
    PERFORM pg_sleep(1);
    p_turns := p_turns + 1;
    RAISE NOTICE 'turn % of batch %', p_turns, p_batch_no;
  END LOOP;
END $$;

CREATE OR REPLACE PROCEDURE sp_demo_quick(IN p_batch_no TEXT, INOUT p_turns BIGINT)
LANGUAGE plpgsql AS $$
BEGIN
  p_turns := 1;
  RAISE NOTICE 'quick procedure of batch %', p_batch_no;
END $$;

-- Demo procedures for MySQL and MariaDB; they touch no table.
DELIMITER //

DROP PROCEDURE IF EXISTS sp_demo_slow //
CREATE PROCEDURE sp_demo_slow(IN p_batch_no VARCHAR(50), OUT p_turns BIGINT)
BEGIN
  SET p_turns = 0;
  WHILE p_turns < 600 DO
    DO SLEEP(1);
    SET p_turns = p_turns + 1;
  END WHILE;
END //

DROP PROCEDURE IF EXISTS sp_demo_quick //
CREATE PROCEDURE sp_demo_quick(IN p_batch_no VARCHAR(50), OUT p_turns BIGINT)
BEGIN
  SET p_turns = 1;
  SELECT CONCAT('quick procedure of batch ', p_batch_no) AS message;
END //

DELIMITER ;

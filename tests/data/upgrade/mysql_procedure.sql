CREATE PROCEDURE post_gl(p_batch_no TEXT)
BEGIN
    DO SLEEP((SELECT work FROM switches));
    INSERT INTO effects VALUES ('POST_GL');
END

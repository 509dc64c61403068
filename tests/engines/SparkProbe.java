import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.SparkConf;
import java.util.List;

/** A batch job of ten rows for tests: {@code SparkProbe ok|fail MILLISECONDS_PER_ROW}. */
public class SparkProbe {
    public static void main(String[] args) {
        String how = args[0];
        long millis = Long.parseLong(args[1]);
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf())) {
            List<Integer> rows = List.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
            long count = spark.parallelize(rows, 2).map(row -> {
                Thread.sleep(millis);
                if (how.equals("fail")) {
                    throw new IllegalStateException("ledger out of balance: 0.01");
                }
                return row;
            }).count();
            System.out.println("::output rows=" + count);
        }
    }
}

import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** A batch job of ten rows for tests: {@code Probe ok|fail MILLISECONDS_PER_ROW}. */
public class Probe {
    static class Slow extends RichMapFunction<Long, Long> {
        private final String how;
        private final long millis;
        private final LongCounter rows = new LongCounter();

        Slow(String how, long millis) {
            this.how = how;
            this.millis = millis;
        }

        @Override
        public void open(OpenContext context) {
            getRuntimeContext().addAccumulator("rows", rows);
        }

        @Override
        public Long map(Long row) throws Exception {
            Thread.sleep(millis);
            if (how.equals("fail")) {
                throw new IllegalStateException("ledger out of balance: 0.01");
            }
            rows.add(1);
            return row;
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setRuntimeMode(RuntimeExecutionMode.BATCH);
        long millis = Long.parseLong(args[1]);
        env.fromSequence(1, 10).map(new Slow(args[0], millis)).sinkTo(new DiscardingSink<>());
        env.execute();
    }
}

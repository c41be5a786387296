import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.RichCoMapFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.util.Collector;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * Small benchmark jobs: linear chain (rebalanced, forward, or with a hot key before the slow operator), two-input
 * (connect), union of two or three inputs, a window that fires a burst; and one that is chained and keyed, as most jobs are.
 */
public class Bench {
  static boolean iso = false;
  static <T extends SingleOutputStreamOperator<byte[]>> T g(T o, String n) { o.disableChaining(); if (iso) o.slotSharingGroup(n); return o; }
  static class Pacer implements java.io.Serializable {
    final long serviceNanos; long next = 0;
    Pacer(long s) { serviceNanos = s; }
    void serve() {
      if (serviceNanos <= 0) return;
      long now = System.nanoTime();
      // deterministic server: back-to-back services keep the exact rate, idle time is not credited
      if (next < now - 2_000_000L) next = now;
      next += serviceNanos;
      long d;
      while ((d = next - System.nanoTime()) > 0) LockSupport.parkNanos(d);
    }
  }
  public static class PMap extends RichMapFunction<byte[], byte[]> {
    final long s; transient Pacer p;
    public PMap(long s) { this.s = s; }
    @Override public void open(OpenContext c) { p = new Pacer(s); }
    @Override public byte[] map(byte[] v) { p.serve(); return v; }
  }
  public static class PCoMap extends RichCoMapFunction<byte[], byte[], byte[]> {
    final long s; transient Pacer p;
    public PCoMap(long s) { this.s = s; }
    @Override public void open(OpenContext c) { p = new Pacer(s); }
    @Override public byte[] map1(byte[] v) { p.serve(); return v; }
    @Override public byte[] map2(byte[] v) { p.serve(); return v; }
  }
  static SingleOutputStreamOperator<byte[]> src(StreamExecutionEnvironment env, String name, int par, double rate, int payload) {
    GeneratorFunction<Long, byte[]> g = i -> { byte[] b = new byte[payload]; b[0] = (byte) (i & 0x7f); return b; };
    DataGeneratorSource<byte[]> s = new DataGeneratorSource<>(g, Long.MAX_VALUE,
        RateLimiterStrategy.perSecond(rate), PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    return g(env.fromSource(s, WatermarkStrategy.noWatermarks(), name).setParallelism(par), name);
  }
  /** The result of a window is one record of full size for each key, whatever was in it. */
  public static class Results extends ProcessWindowFunction<byte[], byte[], Integer, TimeWindow> {
    final int payload;
    public Results(int payload) { this.payload = payload; }
    @Override public void process(Integer key, Context c, Iterable<byte[]> v, Collector<byte[]> out) { out.collect(new byte[payload]); }
  }
  static int keyOf(byte[] b) { return (b[0] & 0xff) | (b[1] & 0xff) << 8; }
  /** Return the first key from `from` on whose records go to subtask `to`. */
  static int keyFor(int to, int p, int from) {
    int k = from;
    while (KeyGroupRangeAssignment.assignKeyToParallelOperator(k, KeyGroupRangeAssignment.computeDefaultMaxParallelism(p), p) != to) k++;
    return k;
  }
  public static void main(String[] a) throws Exception {
    Map<String, String> o = new HashMap<>();
    for (int i = 0; i + 1 < a.length; i += 2) o.put(a[i].replaceFirst("^--", ""), a[i + 1]);
    Configuration c = new Configuration();
    for (Map.Entry<String, String> e : o.entrySet()) if (e.getKey().contains(".")) c.setString(e.getKey(), e.getValue());
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(c);
    int p = Integer.parseInt(o.getOrDefault("p", "2"));
    int payload = Integer.parseInt(o.getOrDefault("payload", "1007"));
    double rate = Double.parseDouble(o.getOrDefault("rate", "1000"));
    double rateB = Double.parseDouble(o.getOrDefault("rateB", "1000"));
    long s = Long.parseLong(o.getOrDefault("serviceNanos", "1000000"));
    long sM = Long.parseLong(o.getOrDefault("mergeNanos", "0"));
    env.setParallelism(p);
    iso = o.getOrDefault("iso", "0").equals("1");
    String dag = o.get("dag");
    if (o.get("dag").equals("chained")) {
      // source and map in one vertex, hashed to a second one of a slow map and a sink
      GeneratorFunction<Long, byte[]> g = i -> { byte[] b = new byte[payload]; b[0] = (byte) (i & 0x7f); return b; };
      env.fromSource(new DataGeneratorSource<>(g, Long.MAX_VALUE, RateLimiterStrategy.perSecond(rate),
              PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO), WatermarkStrategy.noWatermarks(), "source")
          .map(new PMap(0)).name("fast").keyBy(b -> b[0]).map(new PMap(s)).name("slow")
          .sinkTo(new DiscardingSink<>()).name("sink");
      env.execute(o.getOrDefault("name", "chained"));
      return;
    }
    SingleOutputStreamOperator<byte[]> out;
    if (dag.equals("forward")) {
      // the chain, with an exchange of one to one between its operators
      SingleOutputStreamOperator<byte[]> f = g(src(env, "source", p, rate, payload).forward().map(new PMap(0)).name("fast"), "fast");
      out = g(f.forward().map(new PMap(s)).name("slow"), "slow");
    } else if (dag.equals("skewed")) {
      // the chain, with `hot` of a hundred records for the slow operator's first subtask and the rest for its last one
      final int hot = Integer.parseInt(o.getOrDefault("hot", "75")), one = keyFor(0, p, 1), other = keyFor(p - 1, p, 1);
      SingleOutputStreamOperator<byte[]> f = g(src(env, "source", p, rate, payload).rebalance().map(new PMap(0)).name("fast"), "fast");
      out = g(f.keyBy(b -> (b[0] & 0xff) * 37 % 100 < hot ? one : other).map(new PMap(s)).name("slow"), "slow");
    } else if (dag.equals("union3")) {
      // three sources, no operator between them and the merge
      DataStream<byte[]> A = src(env, "sourceA", p, rate, payload), B = src(env, "sourceB", p, rateB, payload);
      DataStream<byte[]> C = src(env, "sourceC", p, Double.parseDouble(o.getOrDefault("rateC", "1000")), payload);
      out = g(A.rebalance().union(B.rebalance(), C.rebalance()).map(new PMap(sM)).name("merge"), "merge");
    } else if (dag.equals("window")) {
      // small records, counted in windows of `windowMs`, of which each key fires one record of full size to a slow operator
      final int keys = Integer.parseInt(o.getOrDefault("keys", "500"));
      GeneratorFunction<Long, byte[]> of = i -> { int k = (int) (i % keys); byte[] b = new byte[83]; b[0] = (byte) k; b[1] = (byte) (k >> 8); return b; };
      SingleOutputStreamOperator<byte[]> S = g(env.fromSource(new DataGeneratorSource<>(of, Long.MAX_VALUE, RateLimiterStrategy.perSecond(rate),
              PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO), WatermarkStrategy.<byte[]>forMonotonousTimestamps()
              .withTimestampAssigner((b, t) -> System.currentTimeMillis()), "source").setParallelism(p), "source");
      SingleOutputStreamOperator<byte[]> w = g(S.keyBy(b -> keyOf(b))
          .window(TumblingEventTimeWindows.of(Duration.ofMillis(Long.parseLong(o.getOrDefault("windowMs", "5000")))))
          .process(new Results(payload)).name("window"), "window");
      out = g(w.rebalance().map(new PMap(s)).name("slow"), "slow");
    } else if (dag.equals("chain")) {
      // source -> fast map -> slow map -> sink, every hop an all-to-all round-robin exchange
      SingleOutputStreamOperator<byte[]> f = g(src(env, "source", p, rate, payload).rebalance().map(new PMap(0)).name("fast"), "fast");
      out = g(f.rebalance().map(new PMap(s)).name("slow"), "slow");
    } else if (dag.equals("join") || dag.equals("union")) {
      // A: source -> fast ; B: source -> slow(s) ; both into merge(sM) -> sink
      DataStream<byte[]> A = g(src(env, "sourceA", p, rate, payload).rebalance().map(new PMap(0)).name("fastA"), "fastA");
      DataStream<byte[]> B = g(src(env, "sourceB", p, rateB, payload).rebalance().map(new PMap(s)).name("slowB"), "slowB");
      if (dag.equals("join")) out = g(A.rebalance().connect(B.rebalance()).map(new PCoMap(sM)).name("merge"), "merge");
      else out = g(A.rebalance().union(B.rebalance()).map(new PMap(sM)).name("merge"), "merge");
    } else throw new IllegalArgumentException(dag);
    org.apache.flink.streaming.api.datastream.DataStreamSink<byte[]> k = out.rebalance().sinkTo(new DiscardingSink<>()).name("sink").disableChaining();
    if (iso) k.slotSharingGroup("sink");
    env.execute(o.getOrDefault("name", dag));
  }
}

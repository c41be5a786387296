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
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/** Small benchmark jobs: linear chain, two-input (connect), union; and one that is chained and keyed, as most jobs are. */
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
    if (dag.equals("chain")) {
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

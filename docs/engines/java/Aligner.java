import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A small aligner as a program: {@code java Aligner} is sound, {@code java Aligner bug} forgets what was aborted.
 *
 * <p>It answers each line of JSON with a line. What is behind a barrier stays in its channel. The lines are written
 * without spaces, and no text of them holds a quote, so that a field is found by its name.
 */
public final class Aligner {
    private static final String HELLO =
            "'version':1,'kind':'aligner','name':'small aligner in Java','reads':'offer','restores':true,"
                    + "'capabilities':{'timeout':false,'leaves_in_channel':true}";

    private static boolean bug;

    record Barrier(long id, long epoch, long flags) {
        String json() {
            return "{'checkpoint_id':" + id + ",'epoch':" + epoch + ",'flags':" + flags + "}";
        }
    }

    private boolean[] waits;
    private boolean[] ended;
    private Barrier current; // of the checkpoint under way
    private long done; // the highest id that is completed or aborted
    private String fails;
    private final List<String> effects = new ArrayList<>();

    Aligner(int inputs) {
        waits = new boolean[inputs];
        ended = new boolean[inputs];
    }

    private boolean canTake(int at) {
        return !waits[at] && !ended[at];
    }

    private boolean anyIsOpen() {
        for (int at = 0; at < waits.length; at++) {
            if (canTake(at)) {
                return true;
            }
        }
        return false;
    }

    private void tell(String name, Object... arguments) {
        StringBuilder effect = new StringBuilder("['" + name + "'");
        for (Object argument : arguments) {
            effect.append(',').append(argument);
        }
        effects.add(effect.append(']').toString());
    }

    boolean offer(String line) {
        int at = (int) number(line, "input");
        if (!canTake(at)) {
            return false;
        }
        String kind = text(line, "kind");
        if (kind.equals("event") || kind.equals("watermark")) {
            tell("deliver", at, number(line, "number"));
        } else if (kind.equals("end")) {
            ended[at] = true;
            tell("end_input", at);
            cutIfAllAreIn();
        } else if (number(line, "checkpoint_id") <= done) {
            tell("ignore", at, number(line, "number"));
        } else if (kind.equals("cancel")) {
            giveUp(number(line, "checkpoint_id"));
        } else {
            onBarrier(at, new Barrier(number(line, "checkpoint_id"), number(line, "epoch"), number(line, "flags")));
        }
        return true;
    }

    private void onBarrier(int at, Barrier barrier) {
        if (current != null && barrier.id() > current.id()) {
            giveUp(current.id());
        }
        tell("block", at, barrier.id());
        waits[at] = true;
        current = current == null ? barrier : current;
        cutIfAllAreIn();
    }

    private void cutIfAllAreIn() {
        if (current == null || anyIsOpen()) {
            return;
        }
        long id = current.id();
        tell("snapshot", current.json());
        if (fails != null) {
            tell("decline", id, "'" + fails + "'");
            tell("cancel", id);
        } else {
            tell("forward", current.json());
            tell("complete", current.json());
        }
        done = id;
        goOn(id);
    }

    private void goOn(long id) {
        tell("resume", current == null ? id : current.id());
        current = null;
        Arrays.fill(waits, false);
    }

    private void giveUp(long id) {
        tell("cancel", id);
        goOn(id);
        if (!bug) {
            done = id;
        }
    }

    void abort(long id) {
        boolean isOlder = current != null && id < current.id();
        boolean allEnded = !Arrays.toString(ended).contains("false");
        if (id > done && !isOlder && !allEnded) {
            giveUp(id);
        }
    }

    String capture() {
        String barrier = current == null ? "" : current.id() + " " + current.epoch() + " " + current.flags();
        return bits(waits) + "|" + bits(ended) + "|" + barrier + "|" + done;
    }

    void restore(String state) {
        String[] parts = state.split("\\|");
        waits = flags(parts[0]);
        ended = flags(parts[1]);
        String[] barrier = parts[2].split(" ");
        current = barrier.length < 3 ? null : new Barrier(
                Long.parseLong(barrier[0]), Long.parseLong(barrier[1]), Long.parseLong(barrier[2]));
        done = Long.parseLong(parts[3]);
    }

    private static String bits(boolean[] flags) {
        StringBuilder bits = new StringBuilder();
        for (boolean flag : flags) {
            bits.append(flag ? '1' : '0');
        }
        return bits.toString();
    }

    private static boolean[] flags(String bits) {
        boolean[] flags = new boolean[bits.length()];
        for (int at = 0; at < flags.length; at++) {
            flags[at] = bits.charAt(at) == '1';
        }
        return flags;
    }

    private static long number(String line, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":(\\d+)").matcher(line);
        if (!found.find()) {
            throw new IllegalArgumentException("no " + name + " in " + line);
        }
        return Long.parseLong(found.group(1));
    }

    private static String text(String line, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(line);
        return found.find() ? found.group(1) : null;
    }

    private String answer(String line) {
        effects.clear();
        fails = text(line, "fails");
        String said = "";
        if (text(line, "do").equals("offer")) {
            said = "'answer':" + offer(line) + ",";
        } else if (text(line, "do").equals("abort")) {
            abort(number(line, "checkpoint_id"));
        }
        List<Boolean> takes = new ArrayList<>();
        for (int at = 0; at < waits.length; at++) {
            takes.add(canTake(at));
        }
        return said + "'effects':[" + String.join(",", effects) + "],'can_take':" + takes + ",'state':'" + capture() + "'";
    }

    public static void main(String[] words) throws IOException {
        bug = Arrays.asList(words).contains("bug");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Aligner aligner = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.contains("\"aligner\":{")) {
                aligner = new Aligner((int) number(line, "num_inputs"));
            }
            if (text(line, "state") != null) {
                aligner.restore(text(line, "state"));
            }
            String found = text(line, "do").equals("hello") ? HELLO : aligner.answer(line);
            System.out.println(("{'step':" + number(line, "step") + "," + found + "}").replace('\'', '"'));
            System.out.flush();
        }
    }
}

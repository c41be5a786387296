// A small aligner as a program: `node aligner.js` is sound, `node aligner.js bug` forgets what was aborted.
// It answers each line of JSON with a line. What is behind a barrier stays in its channel.

const bug = process.argv.includes("bug");
const hello = {
  version: 1, kind: "aligner", name: "small aligner in JavaScript", reads: "offer", restores: true,
  capabilities: { timeout: false, leaves_in_channel: true },
};

class Aligner {
  constructor(inputs) {
    this.waits = Array(inputs).fill(false);
    this.ended = Array(inputs).fill(false);
    this.current = null; // the barrier of the checkpoint under way
    this.done = 0; // the highest id that is completed or aborted
  }

  canTake() {
    return this.waits.map((waits, at) => !waits && !this.ended[at]);
  }

  offer(at, message) {
    if (!this.canTake()[at]) return false;
    if (message.kind === "event" || message.kind === "watermark") {
      this.effects.push(["deliver", at, message.number]);
    } else if (message.kind === "end") {
      this.ended[at] = true;
      this.effects.push(["end_input", at]);
      this.cutIfAllAreIn();
    } else if (message.checkpoint_id <= this.done) {
      this.effects.push(["ignore", at, message.number]);
    } else if (message.kind === "cancel") {
      this.giveUp(message.checkpoint_id);
    } else {
      const { checkpoint_id, epoch, flags } = message;
      if (this.current && checkpoint_id > this.current.checkpoint_id) this.giveUp(this.current.checkpoint_id);
      this.effects.push(["block", at, checkpoint_id]);
      this.waits[at] = true;
      this.current = this.current ?? { checkpoint_id, epoch, flags };
      this.cutIfAllAreIn();
    }
    return true;
  }

  cutIfAllAreIn() {
    if (!this.current || this.canTake().includes(true)) return;
    const id = this.current.checkpoint_id;
    this.effects.push(["snapshot", this.current]);
    if (this.fails) this.effects.push(["decline", id, this.fails], ["cancel", id]);
    else this.effects.push(["forward", this.current], ["complete", this.current]);
    this.done = id;
    this.goOn(id);
  }

  goOn(id) {
    this.effects.push(["resume", this.current ? this.current.checkpoint_id : id]);
    this.current = null;
    this.waits.fill(false);
  }

  giveUp(id) {
    this.effects.push(["cancel", id]);
    this.goOn(id);
    if (!bug) this.done = id;
  }

  abort(id) {
    const isOlder = this.current && id < this.current.checkpoint_id;
    if (id > this.done && !isOlder && this.ended.includes(false)) this.giveUp(id);
  }

  capture() {
    return JSON.stringify([this.waits, this.ended, this.current, this.done]);
  }

  restore(state) {
    [this.waits, this.ended, this.current, this.done] = JSON.parse(state);
  }
}

let aligner = null;

function answer(asked) {
  if (asked.do === "hello") return hello;
  if (asked.aligner) aligner = new Aligner(asked.aligner.num_inputs);
  if (asked.state !== undefined) aligner.restore(asked.state);
  aligner.effects = [];
  aligner.fails = asked.fails;
  let said;
  if (asked.do === "offer") said = aligner.offer(asked.input, asked.message);
  if (asked.do === "abort") aligner.abort(asked.checkpoint_id);
  return { answer: said, effects: aligner.effects, can_take: aligner.canTake(), state: aligner.capture() };
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const asked = JSON.parse(line);
  process.stdout.write(JSON.stringify({ step: asked.step, ...answer(asked) }) + "\n");
});

//! A small aligner as a program: `aligner` is sound, `aligner bug` forgets what was aborted.
//!
//! It answers each line of JSON with a line. What is behind a barrier stays in its channel. The lines are written
//! without spaces, and no text of them holds a quote, so that a field is found by its name.

use std::io::{self, BufRead, Write};

const HELLO: &str = r#""version":1,"kind":"aligner","name":"small aligner in Rust","reads":"offer","restores":true,
    "capabilities":{"timeout":false,"leaves_in_channel":true}"#;

fn number(line: &str, name: &str) -> u64 {
    let from = line.find(&format!("\"{name}\":")).expect(name) + name.len() + 3;
    let digits: String = line[from..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect(name)
}

fn text<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let from = line.find(&format!("\"{name}\":\""))? + name.len() + 4;
    line[from..].split('"').next()
}

/// Id, epoch and flags.
type Barrier = [u64; 3];

fn json(barrier: Barrier) -> String {
    format!(r#"{{"checkpoint_id":{},"epoch":{},"flags":{}}}"#, barrier[0], barrier[1], barrier[2])
}

#[derive(Default)]
struct Aligner {
    waits: Vec<bool>,
    ended: Vec<bool>,
    current: Option<Barrier>, // of the checkpoint under way
    done: u64,                // the highest id that is completed or aborted
    bug: bool,
    fails: Option<String>,
    effects: Vec<String>,
}

impl Aligner {
    fn can_take(&self) -> Vec<bool> {
        self.waits.iter().zip(&self.ended).map(|(waits, ended)| !waits && !ended).collect()
    }

    fn tell(&mut self, effect: String) {
        self.effects.push(effect);
    }

    fn offer(&mut self, line: &str) -> bool {
        let at = number(line, "input") as usize;
        if !self.can_take()[at] {
            return false;
        }
        let kind = text(line, "kind").expect("kind");
        let message = number(line, "number");
        if kind == "event" || kind == "watermark" {
            self.tell(format!(r#"["deliver",{at},{message}]"#));
        } else if kind == "end" {
            self.ended[at] = true;
            self.tell(format!(r#"["end_input",{at}]"#));
            self.cut_if_all_are_in();
        } else if number(line, "checkpoint_id") <= self.done {
            self.tell(format!(r#"["ignore",{at},{message}]"#));
        } else if kind == "cancel" {
            self.give_up(number(line, "checkpoint_id"));
        } else {
            self.on_barrier(at, ["checkpoint_id", "epoch", "flags"].map(|name| number(line, name)));
        }
        true
    }

    fn on_barrier(&mut self, at: usize, barrier: Barrier) {
        if let Some(current) = self.current.filter(|current| barrier[0] > current[0]) {
            self.give_up(current[0]);
        }
        self.tell(format!(r#"["block",{at},{}]"#, barrier[0]));
        self.waits[at] = true;
        self.current = self.current.or(Some(barrier));
        self.cut_if_all_are_in();
    }

    fn cut_if_all_are_in(&mut self) {
        let Some(barrier) = self.current.filter(|_| !self.can_take().contains(&true)) else { return };
        let id = barrier[0];
        self.tell(format!(r#"["snapshot",{}]"#, json(barrier)));
        if let Some(reason) = self.fails.clone() {
            self.tell(format!(r#"["decline",{id},"{reason}"]"#));
            self.tell(format!(r#"["cancel",{id}]"#));
        } else {
            self.tell(format!(r#"["forward",{}]"#, json(barrier)));
            self.tell(format!(r#"["complete",{}]"#, json(barrier)));
        }
        self.done = id;
        self.go_on(id);
    }

    fn go_on(&mut self, id: u64) {
        self.tell(format!(r#"["resume",{}]"#, self.current.map_or(id, |current| current[0])));
        self.current = None;
        self.waits.fill(false);
    }

    fn give_up(&mut self, id: u64) {
        self.tell(format!(r#"["cancel",{id}]"#));
        self.go_on(id);
        if !self.bug {
            self.done = id;
        }
    }

    fn abort(&mut self, id: u64) {
        let is_older = self.current.is_some_and(|current| id < current[0]);
        if id > self.done && !is_older && self.ended.contains(&false) {
            self.give_up(id);
        }
    }

    fn capture(&self) -> String {
        let current = self.current.map_or(String::new(), |barrier| barrier.map(|part| part.to_string()).join(" "));
        format!("{}|{}|{current}|{}", bits(&self.waits), bits(&self.ended), self.done)
    }

    fn restore(&mut self, state: &str) {
        let parts: Vec<&str> = state.split('|').collect();
        (self.waits, self.ended) = (flags(parts[0]), flags(parts[1]));
        let current: Vec<u64> = parts[2].split_whitespace().map(|part| part.parse().expect("a number")).collect();
        self.current = current.try_into().ok();
        self.done = parts[3].parse().expect("a number");
    }
}

fn bits(flags: &[bool]) -> String {
    flags.iter().map(|flag| if *flag { '1' } else { '0' }).collect()
}

fn flags(bits: &str) -> Vec<bool> {
    bits.chars().map(|bit| bit == '1').collect()
}

fn main() {
    let bug = std::env::args().any(|word| word == "bug");
    let mut aligner = Aligner::default();
    for line in io::stdin().lock().lines().map(|line| line.expect("a line")) {
        let (step, does) = (number(&line, "step"), text(&line, "do").expect("do"));
        if does == "hello" {
            println!("{{\"step\":{step},{}}}", HELLO.replace('\n', ""));
            continue;
        }
        if line.contains("\"aligner\":") {
            let inputs = number(&line, "num_inputs") as usize;
            aligner = Aligner { waits: vec![false; inputs], ended: vec![false; inputs], bug, ..Aligner::default() };
        }
        if let Some(state) = text(&line, "state") {
            aligner.restore(state);
        }
        aligner.effects.clear();
        aligner.fails = text(&line, "fails").map(String::from);
        let mut said = String::new();
        if does == "offer" {
            said = format!("\"answer\":{},", aligner.offer(&line));
        } else if does == "abort" {
            aligner.abort(number(&line, "checkpoint_id"));
        }
        let (effects, takes, state) = (aligner.effects.join(","), aligner.can_take(), aligner.capture());
        println!("{{\"step\":{step},{said}\"effects\":[{effects}],\"can_take\":{takes:?},\"state\":\"{state}\"}}");
        io::stdout().flush().expect("a reader");
    }
}

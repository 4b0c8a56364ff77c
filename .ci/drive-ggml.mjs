// Runs a GGML runtime for the tests of operator tracing: loads a model into this
// process, or into a llama-server that it starts in the folder of Debian's packages,
// with the CPU alone, and does what the lines on stdin say, one after another.
//
//   node drive-ggml.mjs RUNTIME MODEL THREADS
//
// RUNTIME is a directory of .ci/install-ggml. Each answer is one line of JSON on
// stdout; the first one says that the model is loaded, and which process computes.
//
//   run PROMPT TOKENS     forgets all, takes in a prompt of so many tokens, decodes greedily
//   window PROMPT MS      goes on with one conversation for so long, of node-llama-cpp; a
//                         new one, with a prompt of so many tokens, where it is about to be full
//   quit                  as the end of stdin does
//
// In an answer, rate is of what was decoded after the first token, which is that of the
// prompt; hash is of all tokens that came, in their order. Lines that do not begin with
// { are the runtime's own.
import {spawn} from "node:child_process";
import {createHash} from "node:crypto";
import {existsSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {createServer} from "node:net";
import path from "node:path";
import {createInterface} from "node:readline";
import {Readable} from "node:stream";
import {pathToFileURL} from "node:url";

const contextSize = 2048;
const [runtime, model, threadsText] = process.argv.slice(2);
const threads = Number(threadsText);
const packages = path.resolve(runtime, "node_modules");
let computing = process.pid;
let conversation, goOn; // what window goes on with, and how
const say = answer => process.stdout.write(JSON.stringify(answer) + "\n");

// Of each runtime a function decode(prompt, limit, done), which calls done(token) with
// each token that comes, limit at most, until it says true. It returns the number of
// tokens, their rate and the whole text where those know better than their caller.
async function nodeLlamaCpp(dir) {
    const lib = await import(pathToFileURL(path.join(dir, "dist/index.js")));
    const llama = await lib.getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error", maxThreads: threads});
    const loaded = await llama.loadModel({modelPath: path.resolve(model), gpuLayers: 0});
    const sequence = (await loaded.createContext({threads, contextSize, batchSize: 512})).getSequence();
    const begin = async (sequence, prompt) => {
        await sequence.clearHistory();
        const tokens = Array.from({length: prompt}, (_, i) => i === 0 ? 1 : 3 + (i * 37) % 256);
        return sequence.evaluate(tokens, {temperature: 0, yieldEogToken: true});
    };
    goOn = async (prompt, done) => {
        // What a graph costs that was not seen before is not what a window is to tell.
        if (!conversation || sequence.nextTokenIndex > contextSize / 2) {
            await conversation?.return();
            conversation = await begin(sequence, prompt);
            for (let i = 0; i < 8; i++) await conversation.next();
        }
        while (sequence.nextTokenIndex < contextSize - 2 && !done((await conversation.next()).value));
    };
    return async (prompt, limit, done) => {
        conversation = undefined;
        let came = 0;
        for await (const token of await begin(sequence, prompt))
            if (done(token) || ++came >= limit) return {};
    };
}

async function fugood(dir) {
    const lib = createRequire(pathToFileURL(dir + "/"))(path.join(dir, "lib/index.js"));
    const context = await lib.loadModel({model: path.resolve(model), n_threads: threads, n_ctx: contextSize, n_batch: 512, n_gpu_layers: 0, n_parallel: 1});
    const native = context.ctx;
    const fixed = (await native.tokenize("A")).tokens.length; // <s>, and what a text begins with
    return async (prompt, limit, done) => {
        native.clearCache(true);
        const text = Array.from({length: prompt - fixed}, (_, i) => String.fromCharCode(65 + (i * 7) % 26)).join("");
        let stopped = false;
        // A token that is half a character comes with the next one or the one after, so
        // that what comes is no token each.
        const {timings, text: all} = await native.completion({prompt: text, n_predict: limit, temperature: 0, top_k: 1}, result => {
            if (!stopped && done(result.token)) {
                stopped = true;
                native.stopCompletion();
            }
        });
        return {tokens: timings.predicted_n + 1, rate: timings.predicted_per_second, text: all};
    };
}

async function freePort() {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise(done => server.once("listening", done));
    const {port} = server.address();
    await new Promise(done => server.close(done));
    return port;
}

async function debian(root) {
    const port = await freePort();
    const server = spawn("chroot", [root, "/usr/bin/llama-server", "-m", "/models/" + path.basename(model), "--host", "127.0.0.1", "--port", String(port),
        "-t", threadsText, "-c", String(contextSize), "-np", "1", "--no-webui"], {stdio: "ignore"});
    process.on("exit", () => server.kill("SIGKILL"));
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => process.exit(1));
    server.on("exit", code => {
        console.error("llama-server ended with code " + code);
        process.exit(1);
    });
    computing = server.pid;
    const at = "http://127.0.0.1:" + port;
    while (!await fetch(at + "/health").then(answer => answer.ok, () => false)) await new Promise(done => setTimeout(done, 100));
    return async (prompt, limit, done) => {
        const stop = new AbortController();
        const tokens = Array.from({length: prompt}, (_, i) => i === 0 ? 1 : 3 + (i * 37) % 256);
        const answer = await fetch(at + "/completion", {method: "POST", headers: {connection: "close"}, signal: stop.signal, body: JSON.stringify({
            prompt: tokens, n_predict: limit, temperature: 0, stream: true, return_tokens: true, cache_prompt: false, ignore_eos: true,
        })});
        const lines = createInterface({input: Readable.fromWeb(answer.body)});
        lines.on("error", () => {}); // that they were cut off, below
        let last = {};
        for await (const line of lines) {
            if (!line.startsWith("data: {")) continue;
            last = JSON.parse(line.slice(6));
            if ((last.tokens ?? []).some(done)) {
                stop.abort();
                break;
            }
        }
        return last.timings ? {tokens: last.timings.predicted_n, rate: last.timings.predicted_per_second} : {};
    };
}

const known = {"node-llama-cpp": nodeLlamaCpp, "@fugood/llama.node": fugood};
const chroot = path.resolve(runtime ?? "", "root");
const name = Object.keys(known).find(name => existsSync(path.join(packages, name)));
if (!(threads > 0) || name === undefined && !existsSync(path.join(chroot, "usr/bin/llama-server"))) {
    console.error("usage: node drive-ggml.mjs RUNTIME MODEL THREADS, where RUNTIME is a directory of .ci/install-ggml");
    process.exit(2);
}
const dir = name && path.join(packages, name);
const decode = name ? await known[name](dir) : await debian(chroot);
say({ready: true, pid: computing, runtime: name ? name + " " + JSON.parse(readFileSync(path.join(dir, "package.json"))).version : "llama-server"});

async function run(prompt, decode, ms = Infinity) {
    const came = [];
    let first = 0n, last = 0n;
    const {text, ...known} = await decode(token => {
        last = process.hrtime.bigint();
        if (came.length === 0) first = last;
        came.push(token);
        return Number(last - first) / 1e6 >= ms;
    }) ?? {};
    const seconds = Number(last - first) / 1e9;
    say({
        prompt, tokens: came.length, distinct: new Set(came).size, seconds, rate: (came.length - 1) / seconds,
        hash: createHash("sha256").update(text ?? came.join(" ")).digest("hex").slice(0, 16), ...known,
    });
}

for await (const line of createInterface({input: process.stdin})) {
    const [word, prompt, limit] = line.trim().split(/\s+/);
    if (word === "quit") break;
    if (word === "run") await run(Number(prompt), done => decode(Number(prompt), Number(limit), done));
    else if (word === "window" && name === "node-llama-cpp") await run(Number(prompt), done => goOn(Number(prompt), done), Number(limit));
    else say({error: "what is " + word + "?"});
}
process.exit(0);

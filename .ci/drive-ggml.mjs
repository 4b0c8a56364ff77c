// Runs a GGML runtime for the tests of operator tracing: loads a model into this
// process, with the CPU alone, and does what the lines on stdin say, one after another.
//
//   node drive-ggml.mjs RUNTIME MODEL THREADS
//
// RUNTIME is a directory of .ci/install-ggml. Each answer is one line of JSON on
// stdout; the first one says that the model is loaded, and the process.
//
//   run PROMPT TOKENS     forgets all, takes in a prompt of so many tokens, decodes greedily
//   window PROMPT MS      the same, decoding for so long
//   quit                  as the end of stdin does
//
// In an answer, rate is of what was decoded after the first token, which is that of the
// prompt; hash is of all tokens that came, in their order. Lines that do not begin with
// { are the runtime's own.
import {createHash} from "node:crypto";
import {existsSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import path from "node:path";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";

const contextSize = 2048;
const [runtime, model, threadsText] = process.argv.slice(2);
const threads = Number(threadsText);
const packages = path.resolve(runtime, "node_modules");
const say = answer => process.stdout.write(JSON.stringify(answer) + "\n");

// Of either library a function decode(prompt, limit, done), which calls done(token) with
// each token that comes, limit at most, until it says true. It returns the number of
// tokens and their rate where the library knows them better than its caller.
async function nodeLlamaCpp(dir) {
    const lib = await import(pathToFileURL(path.join(dir, "dist/index.js")));
    const llama = await lib.getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error", maxThreads: threads});
    const loaded = await llama.loadModel({modelPath: path.resolve(model), gpuLayers: 0});
    const context = await loaded.createContext({threads, contextSize, batchSize: 512});
    const sequence = context.getSequence();
    return async (prompt, limit, done) => {
        let came = 0;
        await sequence.clearHistory();
        const tokens = Array.from({length: prompt}, (_, i) => i === 0 ? 1 : 3 + (i * 37) % 256);
        for await (const token of sequence.evaluate(tokens, {temperature: 0, yieldEogToken: true}))
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
        // A token that is half a character comes with the next one, so that calls are fewer.
        const {timings} = await native.completion({prompt: text, n_predict: limit, temperature: 0, top_k: 1}, result => {
            if (!stopped && done(result.token)) {
                stopped = true;
                native.stopCompletion();
            }
        });
        return {tokens: timings.predicted_n + 1, rate: timings.predicted_per_second};
    };
}

const known = {"node-llama-cpp": nodeLlamaCpp, "@fugood/llama.node": fugood};
const name = Object.keys(known).find(name => existsSync(path.join(packages, name)));
if (name === undefined || !(threads > 0)) {
    console.error("usage: node drive-ggml.mjs RUNTIME MODEL THREADS, where RUNTIME is a directory of .ci/install-ggml");
    process.exit(2);
}
const dir = path.join(packages, name);
const decode = await known[name](dir);
say({ready: true, pid: process.pid, runtime: name + " " + JSON.parse(readFileSync(path.join(dir, "package.json"))).version});

async function run(prompt, limit, ms) {
    const came = [];
    let first = 0n, last = 0n;
    const known = await decode(prompt, limit, token => {
        last = process.hrtime.bigint();
        if (came.length === 0) first = last;
        came.push(token);
        return Number(last - first) / 1e6 >= ms;
    });
    const seconds = Number(last - first) / 1e9;
    say({
        prompt, tokens: came.length, distinct: new Set(came).size, seconds, rate: (came.length - 1) / seconds,
        hash: createHash("sha256").update(came.join(" ")).digest("hex").slice(0, 16), ...known,
    });
}

for await (const line of createInterface({input: process.stdin})) {
    const [word, prompt, limit] = line.trim().split(/\s+/);
    if (word === "quit") break;
    if (word === "run") await run(Number(prompt), Number(limit), Infinity);
    else if (word === "window") await run(Number(prompt), contextSize - Number(prompt) - 2, Number(limit));
    else say({error: "what is " + word + "?"});
}
process.exit(0);

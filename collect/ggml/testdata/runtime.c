// A runtime with GGML's names and structures and a known sequence of operators: tests trace it
// with eBPF and compare the events with that sequence. Its accessors do what GGML's do
// (ggml.h and ggml.c, MIT licence). With -DPROGRAM it is also a program that executes
// the lines on stdin; without, it is a library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#define API __attribute__((visibility("default")))
#define FAR __attribute__((noinline))

enum { OP_NONE, OP_DUP, OP_ADD, OP_MUL, OP_RMS_NORM, OP_MUL_MAT, OP_MUL_MAT_ID, OP_VIEW, OP_UNARY, OP_COUNT };

struct ggml_tensor {
    int type;
    void *buffer;
    int64_t ne[4];
    size_t nb[4];
    int op;
    int32_t op_params[16];
    int32_t flags;
    struct ggml_tensor *src[10];
    struct ggml_tensor *view_src;
    size_t view_offs;
    void *data;
    char name[64];
    void *extra;
    char padding[8];
};

struct ggml_cgraph {
    int size, n_nodes, n_leafs;
    struct ggml_tensor **nodes;
};

struct params {
    int ith, nth;
};

struct backend {
    void *guid;
    const char *(*get_name)(struct backend *);
};

#ifndef DRIVER
static const char *const OP_NAME[OP_COUNT] = {"NONE", "DUP", "ADD", "MUL", "RMS_NORM", "MUL_MAT", "MUL_MAT_ID", "VIEW", "UNARY"};
static const char *const UNARY_NAME[] = {"ABS", "SGN", "SILU"};
struct traits {
    const char *name;
    int64_t blck_size, blck_size_interleave;
    size_t type_size;
    bool is_quantized;
    void *to_float;
};
enum { F32, F16, Q4_0, I32, TYPE_COUNT };
static const struct traits type_traits[TYPE_COUNT] = {
    {"f32", 1, 0, 4, false, 0}, {"f16", 1, 0, 2, false, 0}, {"q4_0", 32, 0, 18, true, 0}, {"i32", 1, 0, 4, false, 0},
};
API FAR void ggml_abort(const char *what) {
    (void)what;
    abort();
}
#define ASSERT(x) do { if (!(x)) ggml_abort(#x); } while (0)
API const char *ggml_version(void) { return "0.99.1"; }
API const char *ggml_op_name(int op) { return OP_NAME[op]; }
API const char *ggml_unary_op_name(int op) { return UNARY_NAME[op]; }
API const char *ggml_type_name(int type) { return type_traits[type].name; }
API int64_t ggml_blck_size(int type) { return type_traits[type].blck_size; }
API size_t ggml_type_size(int type) { return type_traits[type].type_size; }
API size_t ggml_element_size(const struct ggml_tensor *t) { return ggml_type_size(t->type); }
API const char *ggml_get_name(const struct ggml_tensor *t) { return t->name; }
API void *ggml_get_data(const struct ggml_tensor *t) { return t->data; }
API int64_t ggml_nelements(const struct ggml_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }
API bool ggml_is_transposed(const struct ggml_tensor *t) { return t->nb[0] > t->nb[1]; }
static int32_t op_param(const struct ggml_tensor *t, uint32_t i) { return ((const int32_t *)t->op_params)[i]; }
API int ggml_get_unary_op(const struct ggml_tensor *t) {
    ASSERT(t->op == OP_UNARY);
    return op_param(t, 0);
}
API void ggml_set_input(struct ggml_tensor *t) { t->flags |= 1; }
API void ggml_set_output(struct ggml_tensor *t) {
    for (; t; t = t->view_src) t->flags |= 2;
}
API size_t ggml_tensor_overhead(void) { return 32 + sizeof(struct ggml_tensor); }
API int ggml_graph_n_nodes(struct ggml_cgraph *g) { return g->n_nodes; }
API struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *g) { return g->nodes; }

volatile int64_t sink;
static pthread_barrier_t barrier;
static int sleeping; // microseconds that each MUL_MAT of thread 0 takes

// Imitates a C++ exception of an operator, which searches for a frame above that of the graph.
static int unwinding; // 1 requested, 2 the frame was found
API void fake_decode(int tokens, int threads, int micros);
static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *found) {
    *(int *)found |= _Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(c) - 1)) == (void *)fake_decode;
    return _URC_NO_REASON;
}
static void unwind(void) {
    int found = 0;
    _Unwind_Backtrace(frame, &found);
    if (found) unwinding = 2;
}

API FAR bool ggml_cpu_extra_compute_forward(struct params *p, struct ggml_tensor *t) {
    if (t->op == OP_MUL_MAT && p->ith == 0 && sleeping) usleep(sleeping);
    if (unwinding && p->ith == 0) unwind();
    sink += t->ne[0] + p->nth;
    return sink == 1;
}
API FAR void ggml_compute_forward_rms_norm_mul_fused(struct params *p, struct ggml_tensor *norm, struct ggml_tensor *mul) {
    sink += norm->ne[0] * mul->ne[0] + p->ith;
}
API FAR void ggml_barrier(int *pool) {
    sink += *pool;
    if (*pool > 1) pthread_barrier_wait(&barrier);
}

#ifdef AROUND // the exported hook exists but is never called
API FAR void ggml_compute_forward_all(struct params *p, struct ggml_tensor *t) { sink += t->ne[0] + p->nth; }
#define ggml_cpu_extra_compute_forward ggml_compute_forward_all
#define ggml_compute_forward_rms_norm_mul_fused(p, a, b) ggml_compute_forward_all(p, a), ggml_compute_forward_all(p, b)
#endif

struct lane {
    struct ggml_cgraph *graph;
    struct params params;
};
static void *compute(void *what) {
    struct lane *l = what;
    struct ggml_cgraph *g = l->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        struct ggml_tensor *t = g->nodes[i];
        if (t->op == OP_VIEW) continue;
        if (t->op == OP_RMS_NORM && i + 1 < g->n_nodes && g->nodes[i + 1]->op == OP_MUL) {
            ggml_compute_forward_rms_norm_mul_fused(&l->params, t, g->nodes[++i]);
        } else {
            ggml_cpu_extra_compute_forward(&l->params, t);
        }
        ggml_barrier(&l->params.nth);
    }
    return NULL;
}

API FAR int ggml_graph_compute(struct ggml_cgraph *g, int *plan) {
    const int threads = *plan;
    struct lane lanes[threads];
    pthread_t ids[threads];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int i = 0; i < threads; i++) lanes[i] = (struct lane){g, {i, threads}};
    for (int i = 1; i < threads; i++)
        if (pthread_create(&ids[i], &attr, compute, &lanes[i])) abort();
    compute(&lanes[0]);
    for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
    return 0;
}

static char graph_guid;
static const char *cpu_name(struct backend *b) {
    (void)b;
    return "CPU";
}
static struct backend cpu = {&graph_guid, cpu_name};
API FAR int ggml_backend_graph_compute_async(struct backend *b, struct ggml_cgraph *g, int *plan) {
    if (!b->guid) return -1;
    return ggml_graph_compute(g, plan);
}

// The graph: norm and its weight in one step, a product, a view without a step, a
// mixture by ids of two experts out of eight, a function, a sum.
static struct ggml_tensor tensors[16];
static struct ggml_tensor *nodes[8];
static struct ggml_cgraph graph = {8, 0, 0, nodes};
static int32_t ids[64 * 8];

static struct ggml_tensor *tensor(int at, const char *name, int type, int op, int64_t a, int64_t b) {
    struct ggml_tensor *t = &tensors[at];
    const struct traits *f = &type_traits[type];
    *t = (struct ggml_tensor){.type = type, .op = op, .ne = {a, b, 1, 1}, .data = ids};
    t->nb[0] = f->type_size;
    t->nb[1] = f->type_size * a / f->blck_size;
    t->nb[2] = t->nb[3] = t->nb[1] * b;
    strcpy(t->name, name);
    if (op != OP_NONE) nodes[graph.n_nodes++] = t;
    return t;
}

static void build(int tokens) {
    graph.n_nodes = 0;
    for (int i = 0; i < tokens; i++) {
        ids[i * 8] = i % 8;
        ids[i * 8 + 1] = (i + 3) % 8;
    }
    struct ggml_tensor *x = tensor(0, "inp", F32, OP_NONE, 64, tokens);
    struct ggml_tensor *w = tensor(1, "blk.3.attn_norm.weight", F32, OP_NONE, 64, 1);
    struct ggml_tensor *q = tensor(2, "blk.3.attn_q.weight", Q4_0, OP_NONE, 64, 32);
    struct ggml_tensor *e = tensor(3, "blk.3.ffn_up_exps.weight", F16, OP_NONE, 32, 16);
    struct ggml_tensor *which = tensor(4, "ffn_moe_topk-3", I32, OP_NONE, 2, tokens);
    which->nb[1] = 32; // a view of eight
    struct ggml_tensor *norm = tensor(5, "norm-3", F32, OP_RMS_NORM, 64, tokens);
    norm->src[0] = x;
    struct ggml_tensor *mul = tensor(6, "attn_norm-3", F32, OP_MUL, 64, tokens);
    mul->src[0] = norm, mul->src[1] = w;
    struct ggml_tensor *product = tensor(7, "Qcur-3", F32, OP_MUL_MAT, 32, tokens);
    product->src[0] = q, product->src[1] = mul;
    struct ggml_tensor *view = tensor(8, "Qcur-3 (view)", F32, OP_VIEW, 32, tokens);
    view->src[0] = product, view->view_src = product;
    struct ggml_tensor *mixed = tensor(9, "ffn_moe_up-3", F32, OP_MUL_MAT_ID, 16, tokens);
    mixed->src[0] = e, mixed->src[1] = view, mixed->src[2] = which;
    struct ggml_tensor *silu = tensor(10, "ffn_act-3", F32, OP_UNARY, 16, tokens);
    silu->src[0] = mixed, silu->op_params[0] = 2;
    struct ggml_tensor *sum = tensor(11, "l_out-3", F32, OP_ADD, 16, tokens);
    sum->src[0] = silu, sum->src[1] = mixed;
}

struct llama_batch {
    int32_t n_tokens;
    void *token, *embd, *pos, *n_seq_id, *seq_id, *logits;
};
FAR static int inner(void *plan, struct llama_batch *batch) {
    build(batch->n_tokens);
    return ggml_backend_graph_compute_async(&cpu, &graph, plan);
}
FAR static void complain(int code) { sink += code; }
API FAR int llama_decode(void *ctx, struct llama_batch batch) {
    const int ret = inner(ctx, &batch);
    if (ret != 0 && ret != 1) complain(ret);
    return ret;
}

API FAR void fake_decode(int tokens, int threads, int micros) {
    int plan[1] = {threads};
    sleeping = micros;
    llama_decode(plan, (struct llama_batch){.n_tokens = tokens});
}
#endif

#if defined(PROGRAM) || defined(DRIVER)
#ifdef DRIVER // the library is loaded late
static void (*fake_decode)(int, int, int);
#endif
int main(void) {
    char line[4096], path[4000];
    int times, tokens, threads, micros;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "decode %d %d %d %d", &times, &tokens, &threads, &micros) == 4) {
            for (int i = 0; i < times; i++) fake_decode(tokens, threads, micros);
#ifndef DRIVER
        } else if (!strcmp(line, "unwind\n")) {
            unwinding = 1;
            fake_decode(1, 1, 0);
            puts(unwinding == 2 ? "whole" : "cut off");
            unwinding = 0;
#else
        } else if (sscanf(line, "load %3999s", path) == 1) {
            void *lib = dlopen(path, RTLD_NOW);
            fake_decode = lib ? (void (*)(int, int, int))dlsym(lib, "fake_decode") : NULL;
            if (!fake_decode) puts(dlerror());
#endif
        } else if (sscanf(line, "read %3999s", path) == 1 || sscanf(line, "map %3999s", path) == 1) {
            const int fd = open(path, O_RDONLY);
            const off_t size = lseek(fd, 0, SEEK_END);
            if (line[0] == 'm') {
                volatile const char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
                for (off_t i = 0; i < size; i += 4096) (void)p[i];
            } else {
                char *all = malloc(size);
                if (pread(fd, all, size, 0) != size) puts("short");
                free(all);
            }
            close(fd);
        } else if (sscanf(line, "fork %d %d %d %d", &times, &tokens, &threads, &micros) == 4) {
            const pid_t child = fork();
            for (int i = 0; i < times; i++) fake_decode(tokens, threads, micros);
            if (child == 0) _exit(0);
            int status = -1;
            if (waitpid(child, &status, 0) != child || status != 0) puts("the child broke");
        } else if (sscanf(line, "exec %3999s", path) == 1) {
            execl(path, path, (char *)NULL);
        } else {
            return 0;
        }
        puts("done");
    }
    return 0;
}
#endif

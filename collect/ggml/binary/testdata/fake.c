// A runtime with GGML's names and structures, but without their function. Tests compile it
// in many ways and compare what is read from the code with the compiler's layout.
// Its accessors do what GGML's do (ggml.h and ggml.c, MIT licence).
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
#define FAR __attribute__((noinline))

enum { OP_NONE, OP_DUP, OP_ADD, OP_MUL_MAT, OP_UNARY, OP_GLU, OP_COUNT };
enum { TYPE_COUNT = 9 };

struct ggml_tensor {
    int type;
    void *buffer;
    int64_t ne[4];
    size_t nb[4];
    int op;
    int32_t op_params[16];
    int32_t flags;
#ifdef GRADIENT // 2024-06 to 2024-11
    struct ggml_tensor *grad;
#endif
#ifdef FORK // a modified GGML
    void *mine[4];
    struct ggml_tensor *src[12];
#else
    struct ggml_tensor *src[10];
#endif
#ifdef TIMES // until 2024-06
    int perf_runs;
    int64_t perf_cycles, perf_time_us;
#endif
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

// The compiler's offsets, in the order of the Layout.
#define AT(f) offsetof(struct ggml_tensor, f)
API const int GGML_FAKE_OFFSETS[] = {
    AT(type), AT(ne), AT(nb), AT(op), AT(op_params), AT(flags), AT(src), AT(view_src), AT(data), AT(name),
    offsetof(struct ggml_cgraph, nodes), offsetof(struct ggml_cgraph, n_nodes), sizeof(struct ggml_tensor),
    sizeof(((struct ggml_tensor *)0)->src) / sizeof(void *),
};

// The tables are contiguous, as a linker may place them: each is followed by the next.
static const struct {
    const char *unary[3], *glu[3], *op[OP_COUNT], *more[3], *symbol[OP_COUNT];
} names = {
    {"ABS", "SGN", "SILU"},
    {"REGLU", "GEGLU", "SWIGLU"},
    {"NONE", "DUP", "ADD", "MUL_MAT", "UNARY", "GLU"},
    {"NONE", "SUM", "AVG"}, // of something else
    {"none", "x", "x+y", "X*Y", "unary(x)", "glu(x)"},
};

struct traits {
    const char *name;
    int64_t blck_size;
    int64_t blck_size_interleave;
    size_t type_size;
    bool is_quantized;
    void *to_float;
};
static const struct traits type_traits[TYPE_COUNT] = {
    {"f32", 1, 0, 4, false, 0}, {"f16", 1, 0, 2, false, 0}, {"q4_0", 32, 0, 18, true, 0}, {"q4_1", 32, 0, 20, true, 0},
    {"DEPRECATED", 0, 0, 0, false, 0}, {"DEPRECATED", 0, 0, 0, false, 0}, {"q5_0", 32, 0, 22, true, 0},
    {"q5_1", 32, 0, 24, true, 0}, {"q8_0", 32, 0, 34, true, 0},
};

API FAR void ggml_abort(const char *what) {
    (void)what;
    abort();
}
#define ASSERT(x) do { if (!(x)) ggml_abort(#x); } while (0)

API const char *ggml_version(void) { return "0.99.1"; }
API const char *ggml_op_name(int op) { return names.op[op]; }
API const char *ggml_op_symbol(int op) { return names.symbol[op]; }
API const char *ggml_unary_op_name(int op) { return names.unary[op]; }
API const char *ggml_glu_op_name(int op) { return names.glu[op]; }
#ifdef GRADIENT // as in versions of that time
API const char *ggml_type_name(int type) { return type < TYPE_COUNT ? type_traits[type].name : "NONE"; }
#else
API const char *ggml_type_name(int type) { return type_traits[type].name; }
#endif
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
API void ggml_set_input(struct ggml_tensor *t) {
#ifndef GRADIENT
    ASSERT(t->op == OP_NONE);
#endif
    t->flags |= 1;
}
API void ggml_set_output(struct ggml_tensor *t) {
#ifdef GRADIENT
    t->flags |= 2;
#else
    for (; t; t = t->view_src) t->flags |= 2;
#endif
}
#ifndef GRADIENT
API void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks) {
    if (!sinks) {
        a->src[2] = NULL;
        return;
    }
    ASSERT(a->op == OP_MUL_MAT);
    ASSERT(a->src[2] == NULL);
    a->src[2] = sinks;
}
#endif
API size_t ggml_tensor_overhead(void) { return 32 + sizeof(struct ggml_tensor); }
API int ggml_graph_n_nodes(struct ggml_cgraph *g) { return g->n_nodes; }
API struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *g) { return g->nodes; }
API void ggml_backend_tensor_set(struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    ASSERT(t);
    void *buffer = t->view_src ? t->view_src->buffer : t->buffer;
    if (size == 0) return;
    ASSERT(buffer != NULL);
    __builtin_memcpy((char *)t->data + offset, data, size);
}

volatile int64_t sink;
#ifdef HIDDEN // a text that every build contains
#define QUOTED(text) #text
#define TEXT(text) QUOTED(text)
__attribute__((used)) static const char said[] = TEXT(HIDDEN);
#endif
API FAR bool ggml_cpu_extra_compute_forward(struct params *p, struct ggml_tensor *t) {
    for (int64_t i = p->ith; i < t->ne[0]; i += p->nth) sink += i * t->ne[1];
    return sink == 1;
}
API FAR void ggml_compute_forward_rms_norm_mul_fused(struct params *p, struct ggml_tensor *norm, struct ggml_tensor *mul) {
    sink += norm->ne[0] * mul->ne[0] + p->ith;
}
#ifdef OLD // before 2025 each operator went through this
__attribute__((noipa)) static void ggml_compute_forward(struct params *p, struct ggml_tensor *t) { sink += p->ith + t->ne[0]; }
API void use(struct params *p, struct ggml_tensor *t) { ggml_compute_forward(p, t); sink++; }
#endif
#ifdef COPY // the compiler's names of copies and parts of functions
__attribute__((noipa)) static void copied(struct params *p, struct ggml_tensor *t) __asm__("ggml_compute_forward" COPY);
static void copied(struct params *p, struct ggml_tensor *t) { sink += p->ith + t->ne[0]; }
API void use_copied(struct params *p, struct ggml_tensor *t) { copied(p, t); sink++; }
#endif
#ifdef EACH
API FAR void ggml_compute_forward_add(struct params *p, struct ggml_tensor *t) { sink += p->ith + t->ne[0]; }
API FAR void ggml_compute_forward_mul_mat(struct params *p, struct ggml_tensor *t) { sink += p->ith * t->ne[0]; }
#endif
API FAR void ggml_barrier(int *threads) {
    if (*threads == 1) return;
    __atomic_add_fetch(threads + 32, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(threads + 33, __ATOMIC_SEQ_CST)) {
    }
}
API FAR int ggml_graph_compute(struct ggml_cgraph *g, int *plan) {
    struct params p = {0, plan[1]};
    for (int i = 0; i < g->n_nodes; i++) {
        ggml_cpu_extra_compute_forward(&p, g->nodes[i]);
        if (i % 7 == 0) ggml_compute_forward_rms_norm_mul_fused(&p, g->nodes[i], g->nodes[i]->src[0]);
        ggml_barrier(plan);
    }
    return 0;
}

struct llama_batch {
    int32_t n_tokens;
    void *token, *embd, *pos, *n_seq_id, *seq_id, *logits;
};
FAR static int inner(void *ctx, struct llama_batch *batch) {
    sink += batch->n_tokens;
    return ggml_graph_compute(ctx, batch->token);
}
FAR static void complain(int code) { sink += code; }
API FAR int llama_decode(void *ctx, struct llama_batch batch) {
    const int ret = inner(ctx, &batch);
    if (ret != 0 && ret != 1) complain(ret);
    return ret;
}
API FAR int llama_encode(void *ctx, struct llama_batch batch) {
    if (batch.n_tokens == 0) return -1;
    if (batch.n_tokens == 1) return inner(ctx, &batch) + 3;
    sink += inner(ctx, &batch);
    return 0;
}

// Since 0.7 the call ends in a function that it jumps to, which has a cold part.
__attribute__((cold, noinline)) static void warn(int code) { sink -= code; }
API FAR int fake_decode(void *ctx, struct llama_batch *batch) {
    int ret = inner(ctx, batch);
    if (__builtin_expect(ret == 77, 0)) {
        warn(ret);
        ret = (int)(sink % 5);
        warn(ret + 1);
    }
    sink++;
    return ret + 1;
}
API FAR int fake_encode(void *ctx, struct llama_batch *batch) { return inner(ctx, batch) - 1; }
API FAR int llama_process(void *ctx, int kind, struct llama_batch *batch) {
    if (kind == 0) return fake_encode(ctx, batch);
    if (kind == 1) return fake_decode(ctx, batch);
    return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a decoded kernel, one thread of the grid after the other.
 */
#include "test/fake/ptx_parts.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct machine {
    uint64_t *r;
    uint64_t now_ns, start_ns;
    uint64_t rounds; /* of loops that look at memory */
    unsigned loads;  /* since the last jump back */
    bool polls;
    unsigned tid[3], ctaid[3];
    const struct ptx_launch *launch;
};

static float as_float(uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    float value;
    memcpy(&value, &half, sizeof value);
    return value;
}

static uint64_t as_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * Looking at the clock takes time, so that a loop until some time ends. The longer the kernel has
 * run, the longer a look takes (a thousandth of it), so that a wait of seconds is simulated
 * quickly. Not so in a loop that also looks at memory: a time limit there is meant for whoever
 * writes to that memory, who lives in the host's time.
 */
static uint64_t look_at_clock(struct machine *m)
{
    uint64_t step = (m->now_ns - m->start_ns) / 1024;
    m->now_ns += m->polls ? 1 : step > COST_CLOCK_READ_NS ? step : COST_CLOCK_READ_NS;
    return m->now_ns;
}

/* A loop that looks at memory may wait for others: it takes the host's time, and lets them run. */
static void jump_back(struct machine *m)
{
    m->now_ns += 2;
    m->polls = m->loads > 0;
    m->loads = 0;
    if (m->polls && ++m->rounds % 256 == 0) {
        uint64_t host_ns = sim_now();
        m->now_ns = host_ns > m->now_ns ? host_ns : m->now_ns;
        sched_yield();
    }
}

static uint64_t special(const struct machine *m, int which)
{
    const struct ptx_launch *l = m->launch;
    unsigned linear = m->tid[0] + l->block[0] * (m->tid[1] + l->block[1] * m->tid[2]);
    switch (which / 3) {
    case 0:
        return m->tid[which % 3];
    case 1:
        return l->block[which % 3];
    case 2:
        return m->ctaid[which % 3];
    case 3:
        return l->grid[which % 3];
    default:
        return which == 12 ? linear % 32 : which == 13 ? linear / 32 : 0;
    }
}

static bool compare(enum ptx_compare how, int64_t order)
{
    switch (how) {
    case CMP_EQ:
        return order == 0;
    case CMP_NE:
        return order != 0;
    case CMP_LT:
        return order < 0;
    case CMP_LE:
        return order <= 0;
    case CMP_GT:
        return order > 0;
    case CMP_GE:
        return order >= 0;
    }
    return false;
}

static bool compare_floats(enum ptx_compare how, float a, float b)
{
    switch (how) {
    case CMP_EQ:
        return a == b;
    case CMP_NE:
        return a < b || a > b;
    case CMP_LT:
        return a < b;
    case CMP_LE:
        return a <= b;
    case CMP_GT:
        return a > b;
    case CMP_GE:
        return a >= b;
    }
    return false;
}

/* Division by zero gives all ones on a GPU, the remainder the dividend. */
static uint64_t divide(const struct ptx_insn *i, uint64_t a, uint64_t b)
{
    bool rem = i->op == I_REM;
    if (b == 0) {
        return rem ? a : i->mask;
    }
    if (!i->is_signed) {
        return rem ? a % b : a / b;
    }
    int64_t x = ptx_extend(a, i->bytes), y = ptx_extend(b, i->bytes);
    if (y == -1) {
        return rem ? 0 : (uint64_t)0 - (uint64_t)x;
    }
    return (uint64_t)(rem ? x % y : x / y);
}

static uint64_t shift(const struct ptx_insn *i, uint64_t a, uint64_t by)
{
    unsigned bits = 8u * i->bytes;
    if (i->op == I_SHL) {
        return by >= bits ? 0 : a << by;
    }
    if (i->is_signed) {
        return (uint64_t)(ptx_extend(a, i->bytes) >> (by >= bits ? bits - 1 : by));
    }
    return by >= bits ? 0 : a >> by;
}

static uint64_t high_half(const struct ptx_insn *i, uint64_t a, uint64_t b)
{
    unsigned bits = 8u * i->bytes;
    if (i->is_signed) {
        return (uint64_t)(((__int128)ptx_extend(a, i->bytes) * ptx_extend(b, i->bytes)) >> bits);
    }
    return (uint64_t)(((unsigned __int128)a * b) >> bits);
}

static uint64_t wide_product(const struct ptx_insn *i, uint64_t a, uint64_t b)
{
    return i->is_signed ? (uint64_t)(ptx_extend(a, i->bytes) * ptx_extend(b, i->bytes)) : a * b;
}

static uint64_t smaller(const struct ptx_insn *i, uint64_t a, uint64_t b, bool larger)
{
    bool less = i->is_signed ? ptx_extend(a, i->bytes) < ptx_extend(b, i->bytes) : a < b;
    return less != larger ? a : b;
}

static void load_param(struct machine *m, const struct ptx_insn *i)
{
    for (unsigned k = 0; k < i->n; k++) {
        uint64_t value = 0;
        memcpy(&value, m->launch->params + i->offset + k * i->bytes, i->bytes);
        m->r[i->d[k]] = (i->is_signed ? (uint64_t)ptx_extend(value, i->bytes) : value) & i->mask;
    }
}

static uint64_t convert(const struct ptx_insn *i, uint64_t value)
{
    value = i->from_signed ? (uint64_t)ptx_extend(value, i->from_bytes)
                           : value & (UINT64_MAX >> (64 - 8 * i->from_bytes));
    return i->is_signed ? (uint64_t)ptx_extend(value, i->bytes)
                        : value & (UINT64_MAX >> (64 - 8 * i->bytes));
}

/* One thread, to its end. */
static CUresult run_thread(struct machine *m, const struct ptx_kernel *kernel)
{
    uint64_t *const r = m->r;
    const struct ptx_insn *const code = kernel->code;
    for (const struct ptx_insn *i = code;; i++) {
        if (i->predicate >= 0 && (r[i->predicate] != 0) == i->negate) {
            continue;
        }
        switch ((enum ptx_op)i->op) {
        case I_LD_PARAM:
            load_param(m, i);
            break;
        case I_LD:
        case I_ST:
        case I_ST_16:
        case I_ADD_MEM:
        case I_EXCH_MEM:
        case I_CAS_MEM:
        case I_MAX_MEM:
        case I_MIN_MEM:
        case I_AND_MEM:
        case I_OR_MEM:
        case I_XOR_MEM:
            m->loads++;
            TRY(ptx_access(i, r, m->launch->memory));
            break;
        case I_MOV:
            r[i->d[0]] = r[i->s[0]] & i->mask;
            break;
        case I_PACK:
            r[i->d[0]] = (r[i->s[0]] & (UINT64_MAX >> (64 - 8 * i->bytes))) |
                         (r[i->s[1]] << (8 * i->bytes) & i->mask);
            break;
        case I_UNPACK: {
            uint64_t value = r[i->s[0]], mask = UINT64_MAX >> (64 - 8 * i->bytes);
            r[i->d[0]] = value & mask;
            r[i->d[1]] = value >> (8 * i->bytes) & mask;
            break;
        }
        case I_SPECIAL:
            r[i->d[0]] = special(m, i->offset);
            break;
        case I_CLOCK:
            r[i->d[0]] = look_at_clock(m) >> i->offset & i->mask;
            break;
        case I_TIMER: /* steps of 32 ns, as measured on an H200 */
            r[i->d[0]] = (look_at_clock(m) & ~UINT64_C(31)) >> i->offset & i->mask;
            break;
        case I_ADD:
            r[i->d[0]] = (r[i->s[0]] + r[i->s[1]]) & i->mask;
            break;
        case I_SUB:
            r[i->d[0]] = (r[i->s[0]] - r[i->s[1]]) & i->mask;
            break;
        case I_MUL_LO:
            r[i->d[0]] = (r[i->s[0]] * r[i->s[1]]) & i->mask;
            break;
        case I_MUL_HI:
            r[i->d[0]] = high_half(i, r[i->s[0]], r[i->s[1]]) & i->mask;
            break;
        case I_MUL_WIDE:
            r[i->d[0]] = wide_product(i, r[i->s[0]], r[i->s[1]]) & i->mask;
            break;
        case I_MAD_LO:
            r[i->d[0]] = (r[i->s[0]] * r[i->s[1]] + r[i->s[2]]) & i->mask;
            break;
        case I_MAD_WIDE:
            r[i->d[0]] = (wide_product(i, r[i->s[0]], r[i->s[1]]) + r[i->s[2]]) & i->mask;
            break;
        case I_AND:
            r[i->d[0]] = r[i->s[0]] & r[i->s[1]];
            break;
        case I_OR:
            r[i->d[0]] = r[i->s[0]] | r[i->s[1]];
            break;
        case I_XOR:
            r[i->d[0]] = r[i->s[0]] ^ r[i->s[1]];
            break;
        case I_NOT:
            r[i->d[0]] = ~r[i->s[0]] & i->mask;
            break;
        case I_NEG:
            r[i->d[0]] = ((uint64_t)0 - r[i->s[0]]) & i->mask;
            break;
        case I_ABS:
            r[i->d[0]] =
                (ptx_extend(r[i->s[0]], i->bytes) < 0 ? (uint64_t)0 - r[i->s[0]] : r[i->s[0]]) &
                i->mask;
            break;
        case I_SHL:
        case I_SHR:
            r[i->d[0]] = shift(i, r[i->s[0]], r[i->s[1]]) & i->mask;
            break;
        case I_MIN:
            r[i->d[0]] = smaller(i, r[i->s[0]], r[i->s[1]], false);
            break;
        case I_MAX:
            r[i->d[0]] = smaller(i, r[i->s[0]], r[i->s[1]], true);
            break;
        case I_REM:
        case I_DIV:
            r[i->d[0]] = divide(i, r[i->s[0]], r[i->s[1]]) & i->mask;
            break;
        case I_CVT:
            r[i->d[0]] = convert(i, r[i->s[0]]) & i->mask;
            break;
        case I_FADD:
            r[i->d[0]] = as_bits(as_float(r[i->s[0]]) + as_float(r[i->s[1]]));
            break;
        case I_FSUB:
            r[i->d[0]] = as_bits(as_float(r[i->s[0]]) - as_float(r[i->s[1]]));
            break;
        case I_FMUL:
            r[i->d[0]] = as_bits(as_float(r[i->s[0]]) * as_float(r[i->s[1]]));
            break;
        case I_FFMA:
            /* The product of two floats is exact in a double. */
            r[i->d[0]] = as_bits((float)((double)as_float(r[i->s[0]]) * as_float(r[i->s[1]]) +
                                         as_float(r[i->s[2]])));
            break;
        case I_FNEG:
            r[i->d[0]] = as_bits(-as_float(r[i->s[0]]));
            break;
        case I_SETP: {
            uint64_t a = r[i->s[0]], b = r[i->s[1]];
            int64_t x = ptx_extend(a, i->bytes), y = ptx_extend(b, i->bytes);
            bool less = i->is_signed ? x < y : a < b;
            r[i->d[0]] = compare(i->compare, a == b ? 0 : less ? -1 : 1);
            break;
        }
        case I_FSETP:
            r[i->d[0]] = compare_floats(i->compare, as_float(r[i->s[0]]), as_float(r[i->s[1]]));
            break;
        case I_SELP:
            r[i->d[0]] = r[i->s[2]] != 0 ? r[i->s[0]] : r[i->s[1]];
            break;
        case I_BRA:
            if (code + i->offset <= i) {
                jump_back(m);
            }
            i = code + i->offset - 1;
            break;
        case I_FENCE:
            ptx_fence();
            break;
        case I_NANOSLEEP:
            m->now_ns += (uint32_t)r[i->s[0]];
            break;
        case I_DEP_LAUNCH:
            sim_early_release();
            break;
        case I_NOTHING:
        case I_DEP_WAIT:
            /* A kernel never starts before those it depends on have ended. */
            break;
        case I_RET:
            return CUDA_SUCCESS;
        case I_TRAP:
            return CUDA_ERROR_LAUNCH_FAILED;
        }
    }
}

/* Where the thread `number` of the grid stands. */
static void place(struct machine *m, uint64_t number)
{
    const struct ptx_launch *l = m->launch;
    for (int k = 0; k < 3; k++) {
        m->tid[k] = (unsigned)(number % l->block[k]);
        number /= l->block[k];
    }
    for (int k = 0; k < 3; k++) {
        m->ctaid[k] = (unsigned)(number % l->grid[k]);
        number /= l->grid[k];
    }
}

CUresult ptx_run(const struct ptx_kernel *kernel, struct ptx_launch *launch)
{
    uint64_t few[64];
    size_t bytes = kernel->nregisters * sizeof(uint64_t);
    uint64_t *registers = kernel->nregisters <= 64 ? few : sim_alloc(bytes);
    struct machine m = {.r = registers, .launch = launch};
    uint64_t threads = 1, end_ns = launch->now_ns;
    CUresult result = CUDA_SUCCESS;
    for (int k = 0; k < 3; k++) {
        threads *= (uint64_t)launch->grid[k] * launch->block[k];
    }
    for (uint64_t number = 0; number < threads && result == CUDA_SUCCESS; number++) {
        memcpy(registers, kernel->registers, bytes);
        m.now_ns = m.start_ns = launch->now_ns; /* all start together */
        m.loads = 0;
        m.polls = false;
        place(&m, number);
        result = run_thread(&m, kernel);
        end_ns = m.now_ns > end_ns ? m.now_ns : end_ns;
    }
    if (registers != few) {
        free(registers);
    }
    launch->now_ns = end_ns;
    return result;
}

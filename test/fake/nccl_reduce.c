/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on NCCL's data types. Small floats are summed in float and rounded once, to even. */
#include "test/fake/nccl_fake.h"

#include <math.h>
#include <string.h>

size_t fake_type_size(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    }
    return 0;
}

static float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static float bf16_get(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

static uint16_t bf16_put(float f)
{
    uint32_t u = float_bits(f);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded);
}

/* A small float of `exp` exponent and `man` mantissa bits; e4m3 has no infinity (finite_only). */
static float small_get(unsigned v, int exp, int man, bool finite_only)
{
    unsigned sign = v >> (exp + man) & 1, e = v >> man & ((1u << exp) - 1),
             m = v & ((1u << man) - 1);
    int bias = (1 << (exp - 1)) - 1;
    float f;
    if (e == (1u << exp) - 1 && (!finite_only || m == (1u << man) - 1))
        f = m ? NAN : INFINITY;
    else if (e == 0)
        f = ldexpf((float)m, 1 - bias - man);
    else
        f = ldexpf((float)(m | 1u << man), (int)e - bias - man);
    return sign ? -f : f;
}

static unsigned small_put(float f, int exp, int man, bool finite_only)
{
    unsigned sign = (float_bits(f) >> 31) << (exp + man), top = (1u << exp) - 1;
    int bias = (1 << (exp - 1)) - 1;
    unsigned nan = top << man | ((1u << man) - 1), inf = finite_only ? nan - 1 : top << man;
    if (isnan(f))
        return sign | nan;
    float a = fabsf(f);
    if (a == 0)
        return sign;
    int e;
    frexpf(a, &e);
    e--; /* a = 1.x * 2^e */
    if (e < 1 - bias)
        e = 1 - bias;
    /* In units of the last place; rintf rounds to nearest even. */
    float units = rintf(ldexpf(a, man - e));
    unsigned biased = (unsigned)(e + bias);
    unsigned bits = (biased << man) + (unsigned)units - (1u << man);
    return sign | (isinf(a) || bits > inf ? inf : bits);
}

static float half_get(uint16_t h)
{
    return small_get(h, 5, 10, false);
}

static uint16_t half_put(float f)
{
    return (uint16_t)small_put(f, 5, 10, false);
}

static float e4m3_get(uint8_t v)
{
    return small_get(v, 4, 3, true);
}

static uint8_t e4m3_put(float f)
{
    return (uint8_t)small_put(f, 4, 3, true);
}

static float e5m2_get(uint8_t v)
{
    return small_get(v, 5, 2, false);
}

static uint8_t e5m2_put(float f)
{
    return (uint8_t)small_put(f, 5, 2, false);
}

#define SAME(x) (x)
/* acc: the type that adds; unsigned for integers, since C's signed overflow is undefined. */
#define REDUCE(fname, type, acc, get, put, has_float)                                        \
    static void fname(void *dst, const void *const *src, int n, size_t count,                \
                      const struct fake_redop *op)                                           \
    {                                                                                        \
        type *out = dst, bits = 0;                                                           \
        acc factor = 1;                                                                      \
        if (op->premul) {                                                                    \
            memcpy(&bits,                                                                    \
                   op->scalar_in_memory ? (const void *)(uintptr_t)op->scalar : &op->scalar, \
                   sizeof(bits));                                                            \
            factor = (acc)get(bits);                                                         \
        }                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                 \
            acc a = (acc)get(((const type *)src[0])[i]);                                     \
            if (op->premul)                                                                  \
                a = (acc)(a * factor);                                                       \
            for (int r = 1; r < n; r++) {                                                    \
                acc b = (acc)get(((const type *)src[r])[i]);                                 \
                if (op->premul)                                                              \
                    b = (acc)(b * factor);                                                   \
                switch (op->op) {                                                            \
                case ncclProd:                                                               \
                    a = (acc)(a * b);                                                        \
                    break;                                                                   \
                case ncclMax:                                                                \
                    a = LESS_##has_float(type, a, b) ? b : a;                                \
                    break;                                                                   \
                case ncclMin:                                                                \
                    a = LESS_##has_float(type, b, a) ? b : a;                                \
                    break;                                                                   \
                default:                                                                     \
                    a = (acc)(a + b);                                                        \
                }                                                                            \
            }                                                                                \
            if (op->divide_by)                                                               \
                a = DIV_##has_float(type, acc, a, op->divide_by);                            \
            out[i] = (type)put(a);                                                           \
        }                                                                                    \
    }
#define LESS_0(type, a, b) ((type)(a) < (type)(b))
#define LESS_1(type, a, b) ((a) < (b))
#define DIV_0(type, acc, a, n) ((acc)((type)(a) / (type)(n)))
#define DIV_1(type, acc, a, n) ((acc)((a) / (acc)(n)))

REDUCE(reduce_i8, int8_t, uint8_t, SAME, SAME, 0)
REDUCE(reduce_u8, uint8_t, uint8_t, SAME, SAME, 0)
REDUCE(reduce_i32, int32_t, uint32_t, SAME, SAME, 0)
REDUCE(reduce_u32, uint32_t, uint32_t, SAME, SAME, 0)
REDUCE(reduce_i64, int64_t, uint64_t, SAME, SAME, 0)
REDUCE(reduce_u64, uint64_t, uint64_t, SAME, SAME, 0)
REDUCE(reduce_f32, float, float, SAME, SAME, 1)
REDUCE(reduce_f64, double, double, SAME, SAME, 1)
REDUCE(reduce_bf16, uint16_t, float, bf16_get, bf16_put, 1)
REDUCE(reduce_half, uint16_t, float, half_get, half_put, 1)
REDUCE(reduce_e4m3, uint8_t, float, e4m3_get, e4m3_put, 1)
REDUCE(reduce_e5m2, uint8_t, float, e5m2_get, e5m2_put, 1)

/* The workload that tests run most: a plain sum of bf16, in a form that compilers turn into
 * vectors. */
static void sum_bf16(uint16_t *out, const void *const *src, int n, size_t count)
{
    float acc[256];
    for (size_t at = 0; at < count; at += 256) {
        size_t m = count - at < 256 ? count - at : 256;
        const uint16_t *first = (const uint16_t *)src[0] + at;
        for (size_t i = 0; i < m; i++)
            acc[i] = bf16_get(first[i]);
        for (int r = 1; r < n; r++) {
            const uint16_t *in = (const uint16_t *)src[r] + at;
            for (size_t i = 0; i < m; i++)
                acc[i] += bf16_get(in[i]);
        }
        for (size_t i = 0; i < m; i++)
            out[at + i] = bf16_put(acc[i]);
    }
}

void fake_reduce(void *dst, const void *const *src, int n, size_t count, ncclDataType_t type,
                 const struct fake_redop *op)
{
    switch (type) {
    case ncclInt8:
        reduce_i8(dst, src, n, count, op);
        break;
    case ncclUint8:
        reduce_u8(dst, src, n, count, op);
        break;
    case ncclInt32:
        reduce_i32(dst, src, n, count, op);
        break;
    case ncclUint32:
        reduce_u32(dst, src, n, count, op);
        break;
    case ncclInt64:
        reduce_i64(dst, src, n, count, op);
        break;
    case ncclUint64:
        reduce_u64(dst, src, n, count, op);
        break;
    case ncclFloat16:
        reduce_half(dst, src, n, count, op);
        break;
    case ncclFloat32:
        reduce_f32(dst, src, n, count, op);
        break;
    case ncclFloat64:
        reduce_f64(dst, src, n, count, op);
        break;
    case ncclBfloat16:
        if (op->op == ncclSum && !op->premul && !op->divide_by)
            sum_bf16(dst, src, n, count);
        else
            reduce_bf16(dst, src, n, count, op);
        break;
    case ncclFloat8e4m3:
        reduce_e4m3(dst, src, n, count, op);
        break;
    case ncclFloat8e5m2:
        reduce_e5m2(dst, src, n, count, op);
        break;
    }
}

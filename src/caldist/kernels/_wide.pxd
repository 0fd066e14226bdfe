# C for kernels: the bits of a double, exponentials, and functions that are compiled for wider
# registers, too.
#
# A function that is declared here has three versions, for processors with AVX-512, with AVX2 and for
# all, of which the loader of the program takes one. GCC and the C library of GNU can do that; with
# others there is the one version for all. setup.py says which kernel is compiled. The names are those
# that Cython makes of its functions. If it made others, these would be slower, and nothing else.

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__)
    #define CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    typedef Py_ssize_t size;
    #if defined(CALDIST_EXPERTS)
    #define WIDE(kind, name, arguments) \\
        static kind __pyx_f_7caldist_9_compiled_7experts_##name arguments CLONES
    WIDE(void, _factors, (double *, size, size, double, double, double *));
    WIDE(void, _multiply, (double *, size, size, double *));
    WIDE(double, _tree,
         (double *, double, double *, double *, double *, size, size, double, double, double));
    #elif defined(CALDIST_LAPLACE)
    #define WIDE(kind, name, arguments) \\
        static kind __pyx_f_7caldist_9_compiled_7laplace_##name arguments CLONES
    WIDE(void, _decays, (double const *, size, double, double *));
    #endif
    #undef WIDE
    #undef CLONES
    #endif

    static CYTHON_INLINE double caldist_double(PY_LONG_LONG bits) {
        double x;
        memcpy(&x, &bits, 8);
        return x;
    }

    /* e^x for x from -700 to 700, right to the last digit or two, in steps that a compiler can do
       for several x at a time: x = k log 2 + r with |r| below 0.347, and e^r by its series. */
    static CYTHON_INLINE double caldist_exponential(double x) {
        double shifted = x * 1.4426950408889634 + 6755399441055744.0; /* k + 3/2 2^52 */
        double k = shifted - 6755399441055744.0;
        double r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10;
        double e = 1.6059043836821613e-10, power; /* 1/13! */
        uint64_t bits;
        e = e * r + 2.08767569878681e-09;
        e = e * r + 2.505210838544172e-08;
        e = e * r + 2.755731922398589e-07;
        e = e * r + 2.7557319223985893e-06;
        e = e * r + 2.48015873015873e-05;
        e = e * r + 0.0001984126984126984;
        e = e * r + 0.001388888888888889;
        e = e * r + 0.008333333333333333;
        e = e * r + 0.041666666666666664;
        e = e * r + 0.16666666666666666;
        e = e * r + 0.5;
        e = 1.0 + (r + r * r * e);
        memcpy(&bits, &shifted, 8);
        bits = (bits + 1023) << 52; /* of which k is in the last bits */
        memcpy(&power, &bits, 8);
        return e * power;
    }

    /* Begin to read a line of 128 bytes. */
    static CYTHON_INLINE void caldist_fetch(const double *line) {
    #ifdef __GNUC__
        __builtin_prefetch(line);
        __builtin_prefetch(line + 8);
    #endif
    }
    """
    double double_of "caldist_double" (long long bits) noexcept
    double exponential "caldist_exponential" (double x) noexcept
    void fetch "caldist_fetch" (const double *line) noexcept

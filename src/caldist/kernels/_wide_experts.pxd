# C for experts.py, as _wide.pxd has it for sums.py.

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__)
    #define WIDE(kind, name, arguments) \\
        static kind __pyx_f_7caldist_9_compiled_7experts_##name arguments \\
            __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    typedef Py_ssize_t size;
    WIDE(void, _factors, (double *, size, size, double, double, double *));
    WIDE(void, _multiply, (double *, size, size, double *));
    WIDE(void, _powers, (double *, size, double, double *));
    WIDE(double, _tree,
         (double *, double, double *, double *, double *, size, size, double, double, double));
    #undef WIDE
    #endif

    /* Begin to read a line of 128 bytes. */
    static CYTHON_INLINE void caldist_fetch(const double *line) {
    #ifdef __GNUC__
        __builtin_prefetch(line);
        __builtin_prefetch(line + 8);
    #endif
    }

    /* k + 3/2 2^52 has k in its last bits. */
    static CYTHON_INLINE double caldist_power_of_two(double shifted) {
        uint64_t bits;
        double power;
        memcpy(&bits, &shifted, 8);
        bits = (bits + 1023) << 52;
        memcpy(&power, &bits, 8);
        return power;
    }
    """
    void fetch "caldist_fetch" (const double *line) noexcept
    double power_of_two "caldist_power_of_two" (double shifted) noexcept

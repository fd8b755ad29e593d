// What kernels are written in: arrays with their shapes, and how Python calls a function of them.
//
//     static void scale(In<double, 2> points, double s, Out<double, 2> scaled, int64_t begin, int64_t end) { ... }
//     EXPORT(scale, scale)
//
// In Python, `pliant.native.kernels.scale(points, 2.0, scaled, 0, len(points))`. The C++ types are the only definition
// of a signature: the library tells Python how it is called, and Python checks types, dimensions and writability.
// Arrays are contiguous. Built with PLIANT_CHECK_BOUNDS every index is checked, and a wrong one ends the process.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#if defined(_WIN32)
#define PLIANT_API extern "C" __declspec(dllexport)
#else
#define PLIANT_API extern "C" __attribute__((visibility("default")))
#endif

constexpr double INF = std::numeric_limits<double>::infinity();

template <class T, int N>
struct Array {
    T *data;
    int64_t shape[N];

    int64_t size() const {
        int64_t product = 1;
        for (int axis = 0; axis < N; ++axis) product *= shape[axis];
        return product;
    }

    // One element, or with fewer indices than dimensions a part of the array.
    T &operator()(int64_t i) const {
        static_assert(N == 1, "as many indices as dimensions");
        return data[checked(i, 0)];
    }
    T &operator()(int64_t i, int64_t j) const {
        static_assert(N == 2, "as many indices as dimensions");
        return data[checked(i, 0) * shape[1] + checked(j, 1)];
    }
    T &operator()(int64_t i, int64_t j, int64_t k) const {
        static_assert(N == 3, "as many indices as dimensions");
        return data[(checked(i, 0) * shape[1] + checked(j, 1)) * shape[2] + checked(k, 2)];
    }
    T &operator()(int64_t i, int64_t j, int64_t k, int64_t l) const {
        static_assert(N == 4, "as many indices as dimensions");
        return data[((checked(i, 0) * shape[1] + checked(j, 1)) * shape[2] + checked(k, 2)) * shape[3] + checked(l, 3)];
    }
    Array<T, (N > 1 ? N - 1 : 1)> row(int64_t i) const {
        static_assert(N > 1, "rows of at least two dimensions");
        Array<T, (N > 1 ? N - 1 : 1)> part{};
        int64_t stride = 1;
        for (int axis = 1; axis < N; ++axis) stride *= part.shape[axis - 1] = shape[axis];
        part.data = data + checked(i, 0) * stride;
        return part;
    }
    operator Array<const T, N>() const {
        Array<const T, N> same{};
        same.data = data;
        for (int axis = 0; axis < N; ++axis) same.shape[axis] = shape[axis];
        return same;
    }

   private:
    int64_t checked(int64_t i, int axis) const {
#ifdef PLIANT_CHECK_BOUNDS
        if (i < 0 || i >= shape[axis]) {
            std::fprintf(stderr, "pliant: index %lld is out of range; axis %d has %lld entries\n", (long long)i, axis,
                         (long long)shape[axis]);
            std::abort();
        }
#endif
        (void)axis;
        return i;
    }
};

template <class T, int N>
using In = Array<const T, N>;
template <class T, int N>
using Out = Array<T, N>;

// How Python calls: every argument as words of eight bytes. A record, such as a tree of boxes, names its `Fields`, a
// `Types<...>` of arrays and numbers, and is passed as a tuple of those.

union Word {
    int64_t whole;
    double real;
    void *address;
};

template <class...>
struct Types {};

template <class T> constexpr const char *code();
template <> constexpr const char *code<double>() { return "float64"; }
template <> constexpr const char *code<float>() { return "float32"; }
template <> constexpr const char *code<int64_t>() { return "int64"; }
template <> constexpr const char *code<int32_t>() { return "int32"; }
template <> constexpr const char *code<uint32_t>() { return "uint32"; }
template <> constexpr const char *code<uint64_t>() { return "uint64"; }
template <> constexpr const char *code<int8_t>() { return "int8"; }
template <> constexpr const char *code<uint8_t>() { return "uint8"; }
template <> constexpr const char *code<bool>() { return "bool"; }

template <class T, class = void>
struct Argument;  // sign: add the type to a signature. read: take the value off the words.

template <class T>
struct Argument<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
    static void sign(std::string &text) { text += std::is_floating_point_v<T> ? "real " : "whole "; }
    static T read(const Word *&words) {
        const Word word = *words++;
        if constexpr (std::is_floating_point_v<T>) return static_cast<T>(word.real);
        else return static_cast<T>(word.whole);
    }
};

template <class T, int N>
struct Argument<Array<T, N>> {
    static void sign(std::string &text) {
        text += std::is_const_v<T> ? "in:" : "out:";
        text += code<std::remove_const_t<T>>();
        text += ":" + std::to_string(N) + " ";
    }
    static Array<T, N> read(const Word *&words) {
        Array<T, N> array{};
        array.data = static_cast<T *>((*words++).address);
        for (int axis = 0; axis < N; ++axis) array.shape[axis] = (*words++).whole;
        return array;
    }
};

template <class R, class... F>
R read_fields(const Word *&words, Types<F...>) {
    return R{Argument<F>::read(words)...};  // braces evaluate from left to right
}

template <class... F>
void sign_fields(std::string &text, Types<F...>) {
    (Argument<F>::sign(text), ...);
}

template <class T>
struct Argument<T, std::void_t<typename T::Fields>> {
    static void sign(std::string &text) { sign_fields(text, typename T::Fields{}); }
    static T read(const Word *&words) { return read_fields<T>(words, typename T::Fields{}); }
};

template <class F, F function>
struct Called;

template <class R, class... A, R (*function)(A...)>
struct Called<R (*)(A...), function> {
    template <class... Done>
    static Word from(const Word *&words, Types<>, Done &&...done) {
        Word result{};
        if constexpr (std::is_void_v<R>) function(std::forward<Done>(done)...);
        else if constexpr (std::is_floating_point_v<R>) result.real = function(std::forward<Done>(done)...);
        else result.whole = static_cast<int64_t>(function(std::forward<Done>(done)...));
        (void)words;
        return result;
    }
    template <class Next, class... Rest, class... Done>
    static Word from(const Word *&words, Types<Next, Rest...>, Done &&...done) {
        Next next = Argument<Next>::read(words);
        return from(words, Types<Rest...>{}, std::forward<Done>(done)..., std::move(next));
    }
    static int64_t call(const Word *words) { return from(words, Types<std::decay_t<A>...>{}).whole; }
    static const char *signature() {
        static const std::string text = [] {
            std::string made;
            (Argument<std::decay_t<A>>::sign(made), ...);
            return made + (std::is_void_v<R> ? "-> none" : std::is_floating_point_v<R> ? "-> real"
                                                       : std::is_same_v<R, bool>      ? "-> bool"
                                                                                      : "-> whole");
        }();
        return text.c_str();
    }
};

// Makes a function known to Python under a name that is unique in the library. A real result travels as its bits.
#define EXPORT(name, function)                                                                                      \
    PLIANT_API int64_t name(const Word *words) { return Called<decltype(&function), &function>::call(words); }     \
    PLIANT_API const char *name##_signature() { return Called<decltype(&function), &function>::signature(); }

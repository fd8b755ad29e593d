// Sparse Cholesky factorisation, P A Pᵀ = L Lᵀ, by the multifrontal method (Liu 1992).
//
// Order: nested dissection (George 1973). A part of the graph is split where a smoothed difference of distances to two
// far ends of it has its median; of the edges that this cuts, the fewest vertices that cover all of them (König) are the
// separator, which comes after both halves. Small parts are in order of least degree.
//
// Supernodes are runs of columns that have all but the same rows. One with k columns and r rows below them has its part
// of L as a dense panel, row by row: a triangle, whose rows are as long as their block of four needs, with the reciprocal
// diagonal, and (r, k) below it. The update, a dense (r, r), goes to its parent in the elimination tree.
//
// Of a right-hand side, zeros below a node in the tree need no work there, and entries of an answer need those of its
// ancestors alone: `inverse` goes up from where the right-hand sides are and down to where answers are asked for.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <numeric>
#include <type_traits>
#include <vector>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#include "native/four.h"
#include "native/kernel.h"

namespace {

using Index = int32_t;
using Lanes = Four<double>::Lanes;

constexpr size_t LEAF = 120;         // vertices of a part that is not split
constexpr int SMOOTHINGS = 3;        // of the difference of distances
constexpr double OFF_MEDIAN = 0.08;  // where else a part may be split, as a share of it
constexpr int64_t MR = 6, NR = 8;    // rows and columns of a product that are summed in registers
constexpr int64_t KC = 256, MC = 96; // columns and rows of a factor that are packed at once
constexpr int64_t PANEL = 32;        // columns of a panel that are eliminated at once
constexpr int64_t AT_ONCE = 16;      // right-hand sides that are solved for at once
constexpr int64_t GATHERED = 128;    // rows below a panel whose part of an answer is gathered at once

// a b + c, rounded once where the processor has that.
inline Lanes fused(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX2__) && defined(__FMA__)
    return _mm256_fmadd_pd(a, b, c);
#elif defined(FP_FAST_FMA)
    for (int lane = 0; lane < 4; ++lane) c[lane] = std::fma(a[lane], b[lane], c[lane]);
    return c;
#else
    return a * b + c;
#endif
}

inline Lanes all(double a) { return Lanes{a, a, a, a}; }

// The order

struct Graph {
    const Index *start, *to;  // rows of a symmetric matrix
    Index count;
};

class Dissection {
   public:
    explicit Dissection(const Graph &graph)
        : graph(graph), order(graph.count), part(graph.count, 0), seen(graph.count, 0), first(graph.count),
          second(graph.count), score(graph.count), smooth(graph.count), local(graph.count, -1) {
        std::vector<Index> every(graph.count);
        std::iota(every.begin(), every.end(), 0);
        tasks.push_back({std::move(every), 0});
        while (!tasks.empty()) {
            Task task = std::move(tasks.back());
            tasks.pop_back();
            take(task);
        }
    }
    std::vector<Index> result() { return std::move(order); }

   private:
    struct Task {
        std::vector<Index> vertices;
        Index begin;  // of their places in the order
    };
    struct Split {
        std::vector<Index> low, high, between;
        double cost = INF;
    };
    const Graph &graph;
    std::vector<Index> order, part, seen, first, second;
    std::vector<float> score, smooth;
    std::vector<Index> local;
    std::vector<Task> tasks;
    Index parts = 0, visits = 0;

    template <class Visit>
    void neighbours(Index v, const Visit &visit) const {
        for (Index e = graph.start[v]; e < graph.start[v + 1]; ++e)
            if (graph.to[e] != v) visit(graph.to[e]);
    }

    // The vertices of a part that are connected with one, by distance, which is written.
    std::vector<Index> reached(Index from, std::vector<Index> &distance) {
        const Index own = part[from], visit = ++visits;
        std::vector<Index> queue{from};
        seen[from] = visit, distance[from] = 0;
        for (size_t k = 0; k < queue.size(); ++k) {
            const Index v = queue[k];
            neighbours(v, [&](Index u) {
                if (part[u] != own || seen[u] == visit) return;
                seen[u] = visit, distance[u] = distance[v] + 1;
                queue.push_back(u);
            });
        }
        return queue;
    }

    void take(const Task &task) {
        ++parts;
        for (const Index v : task.vertices) part[v] = parts;
        const Index whole = parts;
        Index begin = task.begin;
        for (const Index v : task.vertices) {
            if (part[v] != whole) continue;
            const std::vector<Index> some = reached(v, first);
            if (some.size() <= LEAF) order_leaf(some, begin);
            else split(some, begin);
            ++parts;
            for (const Index u : some) part[u] = parts;
            begin += Index(some.size());
        }
    }

    void split(const std::vector<Index> &some, Index begin) {
        Split best;
        Index a = some.back();
        for (int direction = 0; direction < 2; ++direction) {
            const Index b = reached(a, first).back();
            reached(b, second);
            for (const Index v : some) score[v] = float(first[v] - second[v]);
            Index farthest = a;  // from both ends: along the second direction
            for (const Index v : some)
                if (std::min(first[v], second[v]) > std::min(first[farthest], second[farthest])) farthest = v;
            for (const double share : {0.5, 0.5 - OFF_MEDIAN, 0.5 + OFF_MEDIAN}) {
                if (share == 0.5) smoothed(some);
                Split tried = cut(some, share);
                if (tried.cost < best.cost) best = std::move(tried);
            }
            a = farthest;
        }
        const Index end = begin + Index(some.size());
        if (best.low.empty() || best.high.empty()) {  // as where all is connected with all
            std::copy(some.begin(), some.end(), order.begin() + begin);
            return;
        }
        std::copy(best.between.begin(), best.between.end(), order.begin() + (end - Index(best.between.size())));
        const Index middle = begin + Index(best.low.size());
        tasks.push_back({std::move(best.low), begin});
        tasks.push_back({std::move(best.high), middle});
    }

    void smoothed(const std::vector<Index> &some) {
        const Index own = part[some[0]];
        for (int k = 0; k < SMOOTHINGS; ++k) {
            for (const Index v : some) {
                float sum = score[v], count = 1;
                neighbours(v, [&](Index u) {
                    if (part[u] == own) sum += score[u], ++count;
                });
                smooth[v] = sum / count;
            }
            for (const Index v : some) score[v] = smooth[v];
        }
    }

    Split cut(const std::vector<Index> &some, double share) {
        const Index own = part[some[0]];
        std::vector<Index> sorted = some;
        const auto middle = sorted.begin() + int64_t(share * double(sorted.size()));
        std::nth_element(sorted.begin(), middle, sorted.end(),
                         [&](Index a, Index b) { return score[a] < score[b] || (score[a] == score[b] && a < b); });
        const auto side = [&](Index v) -> Index & { return second[v]; };  // 0 low, 1 high, 2 between
        for (auto it = sorted.begin(); it != sorted.end(); ++it) side(*it) = it < middle ? 0 : 1;
        std::vector<Index> left, right;  // ends of edges that are cut
        for (const Index v : some) {
            bool meets = false;
            neighbours(v, [&](Index u) { meets = meets || (part[u] == own && side(u) != side(v)); });
            if (meets) (side(v) == 0 ? left : right).push_back(v);
        }
        for (const Index v : cover(left, right, own)) side(v) = 2;
        Split out;
        for (const Index v : some) (side(v) == 0 ? out.low : side(v) == 1 ? out.high : out.between).push_back(v);
        const double smaller = double(std::min(out.low.size(), out.high.size()));
        if (smaller > 0) out.cost = double(out.between.size()) * (double(some.size()) / smaller);
        return out;
    }

    // The fewest vertices that cover the edges between two sides, by a largest matching (König 1931).
    std::vector<Index> cover(const std::vector<Index> &left, const std::vector<Index> &right, Index own) {
        const auto across = [&](Index v, const auto &visit) {
            neighbours(v, [&](Index u) {
                if (part[u] == own && second[u] == 1) visit(u);
            });
        };
        for (const Index v : left) local[v] = -1;  // its match
        for (const Index v : right) local[v] = -1;
        for (const Index v : left)
            across(v, [&](Index u) {
                if (local[v] < 0 && local[u] < 0) local[v] = u, local[u] = v;
            });
        std::vector<Index> queue, from(right.size());
        for (size_t k = 0; k < right.size(); ++k) first[right[k]] = Index(k);
        for (const Index root : left) {
            if (local[root] >= 0) continue;
            ++visits;
            queue.assign(1, root);
            Index free = -1;
            for (size_t k = 0; k < queue.size() && free < 0; ++k)
                across(queue[k], [&](Index u) {
                    if (seen[u] == visits || free >= 0) return;
                    seen[u] = visits, from[first[u]] = queue[k];
                    if (local[u] < 0) free = u;
                    else queue.push_back(local[u]);
                });
            while (free >= 0) {
                const Index v = from[first[free]], next = local[v];
                local[v] = free, local[free] = v, free = next;
            }
        }
        ++visits;
        queue.clear();
        for (const Index v : left)
            if (local[v] < 0) seen[v] = visits, queue.push_back(v);
        for (size_t k = 0; k < queue.size(); ++k)
            across(queue[k], [&](Index u) {
                if (seen[u] == visits) return;
                seen[u] = visits;
                if (local[u] >= 0 && seen[local[u]] != visits) seen[local[u]] = visits, queue.push_back(local[u]);
            });
        std::vector<Index> out;
        for (const Index v : left)
            if (seen[v] != visits) out.push_back(v);
        for (const Index u : right)
            if (seen[u] == visits) out.push_back(u);
        for (const std::vector<Index> *side : {&left, &right})
            for (const Index v : *side) local[v] = -1;
        return out;
    }

    // Least degree first, with the separators around as vertices that stay.
    void order_leaf(const std::vector<Index> &some, Index begin) {
        std::vector<Index> every = some;
        for (const Index v : some) local[v] = 0;
        for (const Index v : some)
            neighbours(v, [&](Index u) {
                if (local[u] < 0) local[u] = 0, every.push_back(u);
            });
        for (size_t k = 0; k < every.size(); ++k) local[every[k]] = Index(k);
        const size_t count = some.size(), words = (every.size() + 63) / 64;
        std::vector<uint64_t> adjacent(count * words, 0);
        for (size_t k = 0; k < count; ++k) {
            const auto mark = [&](Index l) { adjacent[k * words + size_t(l) / 64] |= uint64_t(1) << (l % 64); };
            mark(Index(k));
            neighbours(some[k], [&](Index u) { mark(local[u]); });
        }
        for (const Index v : every) local[v] = -1;
        std::vector<char> gone(count, 0);
        std::vector<int> degree(count);
        const auto measure = [&](size_t k) {
            degree[k] = 0;
            for (size_t w = 0; w < words; ++w) degree[k] += __builtin_popcountll(adjacent[k * words + w]);
        };
        for (size_t k = 0; k < count; ++k) measure(k);
        for (size_t place = 0; place < count; ++place) {
            size_t least = count;
            for (size_t k = 0; k < count; ++k)
                if (!gone[k] && (least == count || degree[k] < degree[least])) least = k;
            gone[least] = 1;
            order[begin + Index(place)] = some[least];
            adjacent[least * words + least / 64] &= ~(uint64_t(1) << (least % 64));
            for (size_t k = 0; k < count; ++k) {
                if (gone[k] || !(adjacent[least * words + k / 64] >> (k % 64) & 1)) continue;
                for (size_t w = 0; w < words; ++w) adjacent[k * words + w] |= adjacent[least * words + w];
                adjacent[k * words + least / 64] &= ~(uint64_t(1) << (least % 64));
                measure(k);
            }
        }
    }
};

// Dense products

// C (m, n) -= A Bᵀ, of A (m, k) and B (n, k); of a symmetric C what is not above its diagonal, and maybe more.
class Product {
   public:
    void subtract(double *C, int64_t ldc, const double *A, int64_t lda, int64_t m, const double *B, int64_t ldb,
                  int64_t n, int64_t k, bool symmetric) {
        for (int64_t from = 0; from < k; from += KC) {
            const int64_t depth = std::min(KC, k - from);
            pack<NR>(B + from, ldb, n, depth, right);
            for (int64_t top = 0; top < m; top += MC) {
                const int64_t rows = std::min(MC, m - top);
                pack<MR>(A + top * lda + from, lda, rows, depth, left);
                for (int64_t column = 0; column < n; column += NR) {
                    if (symmetric && column >= top + rows) break;
                    for (int64_t row = 0; row < rows; row += MR) {
                        if (symmetric && column >= top + row + MR) continue;
                        tile(C + (top + row) * ldc + column, ldc, &left[row * depth], &right[column * depth], depth,
                             std::min(MR, rows - row), std::min(NR, n - column));
                    }
                }
            }
        }
    }

   private:
    std::vector<double> left, right;

    // Strips of S rows, each column by column, with zeros for rows that there are not.
    template <int64_t S>
    static void pack(const double *A, int64_t lda, int64_t m, int64_t k, std::vector<double> &out) {
        out.resize(size_t((m + S - 1) / S * S * k));
        for (int64_t top = 0; top < m; top += S) {
            double *at = &out[size_t(top * k)];
            const int64_t rows = std::min(S, m - top);
            for (int64_t i = 0; i < S; ++i)
                for (int64_t p = 0; p < k; ++p) at[p * S + i] = i < rows ? A[(top + i) * lda + p] : 0.0;
        }
    }

    static void tile(double *C, int64_t ldc, const double *a, const double *b, int64_t k, int64_t m, int64_t n) {
        Lanes sum[MR][2] = {};
        for (int64_t p = 0; p < k; ++p, a += MR, b += NR) {
            Four<double> low, high;
            low.load(b), high.load(b + 4);
            for (int64_t i = 0; i < MR; ++i) {
                const Lanes one = all(a[i]);
                sum[i][0] = fused(one, low.v, sum[i][0]);
                sum[i][1] = fused(one, high.v, sum[i][1]);
            }
        }
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) C[i * ldc + j] -= sum[i][j / 4][j % 4];
    }
};

// The first k rows of a panel (m, k) become L, and those below them times L⁻ᵀ. False if a pivot is not positive.
bool eliminate(double *P, int64_t m, int64_t k, int64_t stride, Product &product) {
    for (int64_t from = 0; from < k; from += PANEL) {
        const int64_t to = std::min(from + PANEL, k), width = to - from;
        double *const top = P + from * stride;
        product.subtract(top + from, stride, top, stride, m - from, top, stride, width, from, false);
        for (int64_t j = from; j < to; ++j) {
            double *const row = P + j * stride;
            for (int64_t p = from; p <= j; ++p) {
                double sum = row[p];
                for (int64_t q = from; q < p; ++q) sum -= row[q] * P[p * stride + q];
                if (p < j) row[p] = sum / P[p * stride + p];
                else if (!(sum > 0.0 && std::isfinite(sum))) return false;
                else row[p] = std::sqrt(sum);
            }
        }
        Lanes x[PANEL][2];
        for (int64_t i = to; i < m; i += 8) {  // eight rows at once
            const int64_t rows = std::min(int64_t(8), m - i);
            for (int64_t p = 0; p < width; ++p)
                for (int64_t r = 0; r < 8; ++r) x[p][r / 4][r % 4] = r < rows ? P[(i + r) * stride + from + p] : 0.0;
            for (int64_t p = 0; p < width; ++p) {
                const double *const row = top + p * stride + from;
                Lanes a = x[p][0], b = x[p][1];
                for (int64_t q = 0; q < p; ++q) {
                    const Lanes share = all(-row[q]);
                    a = fused(share, x[q][0], a), b = fused(share, x[q][1], b);
                }
                x[p][0] = a / all(row[p]), x[p][1] = b / all(row[p]);
            }
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t p = 0; p < width; ++p) P[(i + r) * stride + from + p] = x[p][r / 4][r % 4];
        }
    }
    return true;
}

// The factor

class Cholesky {
   public:
    Cholesky(In<int32_t, 1> start, In<int32_t, 1> column)
        : n(Index(start.shape[0] - 1)), indptr(start.data, start.data + start.shape[0]),
          indices(column.data, column.data + column.shape[0]) {
        order = Dissection({indptr.data(), indices.data(), n}).result();
        arrange();
        const std::vector<Index> parent = elimination_tree();
        postorder(parent);
        lay_out(joined_supernodes());
    }

    bool factorise(const double *data) {
        panels.resize(size_t(panel_begins.back()));
        std::vector<std::vector<double>> updates(supernodes());
        std::vector<Index> local(n, -1), into;
        std::vector<double> front;
        Product product;
        for (size_t s = 0; s < supernodes(); ++s) {
            const int64_t k = width(s), r = below(s), stride = padded(k), from = begins[s], to = begins[s + 1];
            const Index *const under = &rows[size_t(row_begins[s])];
            front.assign(size_t((k + r) * stride), 0.0);
            double *const P = front.data();
            for (int64_t j = 0; j < k; ++j) local[size_t(from + j)] = Index(j);
            for (int64_t i = 0; i < r; ++i) local[size_t(under[i])] = Index(k + i);
            for (int64_t j = from; j < to; ++j)
                for (Index e = indptr[order[j]]; e < indptr[order[j] + 1]; ++e) {
                    const Index i = place[indices[e]];
                    if (i >= j) P[local[i] * stride + (j - from)] = data[e];
                }
            std::vector<double> &U = updates[s];
            U.assign(size_t(r * r), 0.0);
            for (const Index c : children[s]) {
                const int64_t count = below(size_t(c));
                const Index *const own = &rows[size_t(row_begins[c])];
                const double *u = updates[c].data();
                into.resize(size_t(count));
                for (int64_t i = 0; i < count; ++i) into[size_t(i)] = local[own[i]];
                const int64_t inner = std::lower_bound(into.begin(), into.end(), Index(k)) - into.begin();
                for (int64_t i = 0; i < count; ++i, u += count) {
                    double *const panel = P + into[i] * stride;
                    for (int64_t j = 0; j < std::min(i + 1, inner); ++j) panel[into[j]] += u[j];
                    if (i < inner) continue;
                    double *const update = U.data() + (into[i] - k) * r - k;
                    for (int64_t j = inner; j <= i; ++j) update[into[j]] += u[j];
                }
                std::vector<double>().swap(updates[c]);
            }
            if (!eliminate(P, k + r, k, stride, product)) return false;
            product.subtract(U.data(), r, P + k * stride, stride, r, P + k * stride, stride, r, k, true);
            store(P, k, r, &panels[size_t(panel_begins[s])]);
        }
        return true;
    }

    // x = A⁻¹ b, both (n, count).
    void solve(const double *b, double *x, int64_t count) const {
        const int64_t apart = length();
        std::vector<Index> every(supernodes());
        std::iota(every.begin(), every.end(), 0);
        std::vector<double> y(size_t(std::min(count, AT_ONCE) * apart), 0.0);
        for (int64_t from = 0; from < count; from += AT_ONCE) {
            const int64_t some = std::min(AT_ONCE, count - from);
            for (Index i = 0; i < n; ++i)
                for (int64_t c = 0; c < some; ++c) y[size_t(c * apart + place[i])] = b[i * count + from + c];
            sweep(every, every, y.data(), some);
            for (Index i = 0; i < n; ++i)
                for (int64_t c = 0; c < some; ++c) x[i * count + from + c] = y[size_t(c * apart + place[i])];
        }
    }

    // A⁻¹ at some rows and columns.
    void inverse(In<int64_t, 1> at, In<int64_t, 1> columns, Out<double, 2> out) const {
        const int64_t apart = length(), count = columns.shape[0];
        std::vector<int64_t> sorted(size_t(count), 0);
        std::iota(sorted.begin(), sorted.end(), 0);
        std::sort(sorted.begin(), sorted.end(),
                  [&](int64_t a, int64_t b) { return place[columns(a)] < place[columns(b)]; });
        std::vector<Index> mark(supernodes(), 0);
        const std::vector<Index> down = path(at.data, nullptr, at.shape[0], mark, 1);
        std::vector<double> y(size_t(std::min(count, AT_ONCE) * apart), 0.0);
        Index turn = 1;
        for (int64_t from = 0; from < count; from += AT_ONCE) {
            const int64_t some = std::min(AT_ONCE, count - from), *const which = &sorted[size_t(from)];
            const std::vector<Index> up = path(columns.data, which, some, mark, ++turn);
            for (const std::vector<Index> *nodes : {&up, &down})
                for (const Index s : *nodes)
                    for (int64_t c = 0; c < some; ++c) std::fill_n(&y[size_t(c * apart + begins[s])], width(s), 0.0);
            for (int64_t c = 0; c < some; ++c) y[size_t(c * apart + place[columns(which[c])])] = 1.0;
            sweep(up, down, y.data(), some);
            for (int64_t i = 0; i < at.shape[0]; ++i)
                for (int64_t c = 0; c < some; ++c) out(i, which[c]) = y[size_t(c * apart + place[at(i)])];
        }
    }

    int64_t entries() const { return panel_begins.back(); }

   private:
    Index n;
    std::vector<Index> indptr, indices;  // of A
    std::vector<Index> order, place;     // the unknown at a place, and the place of an unknown
    std::vector<Index> begins;           // of supernodes' columns
    std::vector<Index> node;             // the supernode of a place
    std::vector<Index> above;            // the parent of a supernode; -1: none
    std::vector<std::vector<Index>> children;
    std::vector<int64_t> row_begins, panel_begins;
    std::vector<Index> rows;  // of supernodes, below their columns
    std::vector<double> panels;

    size_t supernodes() const { return begins.size() - 1; }
    int64_t width(size_t s) const { return begins[s + 1] - begins[s]; }
    static int64_t padded(int64_t k) { return (k + 3) / 4 * 4; }
    // Entries of the first k rows of a triangle, with k a multiple of four.
    static int64_t triangle(int64_t k) { return k * (k + 4) / 2; }
    int64_t below(size_t s) const { return row_begins[s + 1] - row_begins[s]; }

    void arrange() {
        place.resize(size_t(n));
        for (Index k = 0; k < n; ++k) place[size_t(order[k])] = k;
    }

    std::vector<Index> elimination_tree() const {
        std::vector<Index> parent(n, -1), root(n, -1);
        for (Index i = 0; i < n; ++i)
            for (Index e = indptr[order[i]]; e < indptr[order[i] + 1]; ++e)
                for (Index k = place[indices[e]]; k < i && k >= 0;) {
                    const Index next = root[k];
                    root[k] = i;
                    if (next < 0) parent[k] = i;
                    k = next;
                }
        return parent;
    }

    // Children right before their parents, so that supernodes are runs of columns.
    void postorder(const std::vector<Index> &parent) {
        std::vector<Index> first(n, -1), next(n, -1), sorted, stack;
        for (Index k = n; k-- > 0;)
            if (parent[k] >= 0) next[k] = first[parent[k]], first[parent[k]] = k;
        for (Index k = 0; k < n; ++k) {
            if (parent[k] >= 0) continue;
            stack.push_back(k);
            while (!stack.empty()) {
                const Index top = stack.back(), child = first[top];
                if (child >= 0) first[top] = next[child], stack.push_back(child);
                else sorted.push_back(order[top]), stack.pop_back();
            }
        }
        order = std::move(sorted);
        arrange();
    }

    struct Node {
        Index begin, end;         // of its columns
        std::vector<Index> rows;  // below them
        int64_t zeros;            // that are stored to have the same rows for all columns
    };

    // A column goes on with the node before it if it has the same rows.
    std::vector<Node> joined_supernodes() const {
        std::vector<Node> done;
        std::vector<std::vector<Index>> awaited(n);  // nodes by the first row below them
        std::vector<std::vector<Index>> under;       // rows of all nodes, as they were before nodes were joined
        std::vector<Index> mark(n, -1);
        Node node{0, 0, {}, 0};
        size_t gone = 0;  // rows of the node that have become columns
        const auto close = [&] {
            node.rows.erase(node.rows.begin(), node.rows.begin() + int64_t(gone));
            gone = 0;
            if (!node.rows.empty()) awaited[node.rows[0]].push_back(Index(under.size()));
            under.push_back(node.rows);
            join(done, node);
            done.push_back(std::move(node));
        };
        for (Index j = 0; j < n; ++j) {
            const Index own = Index(under.size());
            bool same = gone < node.rows.size() && node.rows[gone] == j;
            const auto each_row = [&](const auto &visit) {
                for (Index e = indptr[order[j]]; e < indptr[order[j] + 1]; ++e)
                    if (place[indices[e]] > j) visit(place[indices[e]]);
                for (const Index c : awaited[j])
                    for (size_t k = 1; k < under[c].size(); ++k) visit(under[c][k]);
            };
            if (same) each_row([&](Index i) { same = same && mark[i] == own; });
            if (same) {
                ++gone, node.end = j + 1;
            } else {
                if (j > 0) close();
                const Index fresh = Index(under.size());
                node = Node{j, j + 1, {}, 0};
                each_row([&](Index i) {
                    if (mark[i] != fresh) mark[i] = fresh, node.rows.push_back(i);
                });
                std::sort(node.rows.begin(), node.rows.end());
            }
            for (const Index c : awaited[j]) std::vector<Index>().swap(under[c]);
        }
        close();
        return done;
    }

    void lay_out(const std::vector<Node> &nodes) {
        begins.assign(1, 0), row_begins.assign(1, 0), panel_begins.assign(1, 0);
        node.resize(size_t(n));
        for (size_t s = 0; s < nodes.size(); ++s) {
            const Node &one = nodes[s];
            std::fill(node.begin() + one.begin, node.begin() + one.end, Index(s));
            begins.push_back(one.end);
            rows.insert(rows.end(), one.rows.begin(), one.rows.end());
            row_begins.push_back(int64_t(rows.size()));
            const int64_t k = one.end - one.begin;
            panel_begins.push_back(panel_begins.back() + triangle(padded(k)) + padded(k) * int64_t(one.rows.size()));
        }
        rows.push_back(0);  // so that a node without rows may point there
        above.assign(nodes.size(), -1), children.resize(nodes.size());
        for (size_t s = 0; s < nodes.size(); ++s)
            if (below(s)) above[s] = node[rows[row_begins[s]]], children[above[s]].push_back(Index(s));
    }

    // Makes one node of it and its last children, as long as that stores few zeros: long runs are quicker.
    static void join(std::vector<Node> &done, Node &node) {
        while (!done.empty()) {
            const Node &child = done.back();
            if (child.rows.empty() || child.rows[0] >= node.end) return;
            const int64_t inner = child.end - child.begin, k = node.end - child.begin, r = int64_t(node.rows.size());
            const int64_t more = inner * (node.end - node.begin + r - int64_t(child.rows.size()));
            const int64_t zeros = child.zeros + node.zeros + more;
            const double share = double(zeros) / double(k * (k + 1) / 2 + k * r);
            if (share > (k <= 4 ? 1.0 : k <= 16 ? 0.8 : k <= 48 ? 0.1 : 0.05)) return;
            node.begin = child.begin, node.zeros = zeros;
            done.pop_back();
        }
    }

    // The supernodes of some unknowns and all above them, from the leaves on.
    std::vector<Index> path(const int64_t *unknowns, const int64_t *which, int64_t count, std::vector<Index> &mark,
                            Index stamp) const {
        std::vector<Index> out;
        for (int64_t k = 0; k < count; ++k)
            for (Index s = node[place[unknowns[which ? which[k] : k]]]; s >= 0 && mark[s] != stamp; s = above[s])
                mark[s] = stamp, out.push_back(s);
        std::sort(out.begin(), out.end());
        return out;
    }

    static Lanes wide(const double *from) {
        Four<double> four;
        four.load(from);
        return four.v;
    }

    static void store(const double *front, int64_t k, int64_t r, double *out) {
        const int64_t stride = padded(k);
        for (int64_t i = 0; i < stride; ++i)
            for (int64_t p = 0; p < i / 4 * 4 + 4; ++p)
                *out++ = i >= k || p > i ? 0.0 : p < i ? front[i * stride + p] : 1 / front[i * stride + i];
        front += k * stride;
        std::copy_n(front, r * stride, out);
    }

    // sum[i][c] = Σ P[i, p] y_c[p] over `count` columns, a multiple of four, for R rows and C vectors.
    template <int R, int C>
    static void dots(const double *P, int64_t stride, int64_t count, const double *y, int64_t apart, double (*sum)[C]) {
        Lanes total[R][C] = {};
        for (int64_t p = 0; p < count; p += 4) {
            Lanes at[C];
            for (int c = 0; c < C; ++c) at[c] = wide(y + c * apart + p);
            for (int i = 0; i < R; ++i) {
                const Lanes row = wide(P + i * stride + p);
                for (int c = 0; c < C; ++c) total[i][c] = fused(row, at[c], total[i][c]);
            }
        }
        for (int i = 0; i < R; ++i)
            for (int c = 0; c < C; ++c) {
                const Lanes t = total[i][c];
                sum[i][c] = (t[0] + t[2]) + (t[1] + t[3]);
            }
    }

    // y becomes L⁻¹ y at a supernode's columns, and what these take from its rows is taken; of C vectors.
    template <int C>
    void forward(size_t s, double *y) const {
        constexpr int R = C == 4 ? 2 : 4;
        const int64_t k = width(s), r = below(s), stride = padded(k), apart = length();
        const double *P = &panels[size_t(panel_begins[s])];
        const Index *const under = &rows[size_t(row_begins[s])];
        double *const own = y + begins[s], sum[4][C];
        if (is_zero<C>(own, k, apart)) return;
        for (int64_t j = 0; j < k; P += 4 * (j + 4), j += 4) {
            const int64_t some = std::min(int64_t(4), k - j);
            dots<R, C>(P, j + 4, j, own, apart, sum);
            if (R == 2) dots<R, C>(P + 2 * (j + 4), j + 4, j, own, apart, sum + 2);
            for (int64_t i = 0; i < some; ++i) {
                const double *const row = P + i * (j + 4) + j;
                for (int c = 0; c < C; ++c) {
                    double *const at = own + c * apart + j, left = at[i] - sum[i][c];
                    for (int64_t p = 0; p < i; ++p) left -= row[p] * at[p];
                    at[i] = left * row[i];
                }
            }
        }
        for (int64_t i = 0; i < r; i += R, P += R * stride) {
            const int64_t some = std::min(int64_t(R), r - i);
            if (some == R) dots<R, C>(P, stride, stride, own, apart, sum);
            else
                for (int64_t q = 0; q < some; ++q) dots<1, C>(P + q * stride, stride, stride, own, apart, sum + q);
            for (int64_t q = 0; q < some; ++q)
                for (int c = 0; c < C; ++c) y[c * apart + under[i + q]] -= sum[q][c];
        }
    }

    // own_c[p] -= Σ P[i, p] x_c[i] over `count` rows, for B times four columns p.
    template <int B, int C>
    static void take(const double *P, int64_t stride, int64_t count, const double *x, int64_t between, double *own,
                     int64_t apart) {
        Lanes total[B][C] = {};
        for (int64_t i = 0; i < count; ++i, P += stride) {
            Lanes at[C];
            for (int c = 0; c < C; ++c) at[c] = all(x[c * between + i]);
            for (int b = 0; b < B; ++b) {
                const Lanes row = wide(P + 4 * b);
                for (int c = 0; c < C; ++c) total[b][c] = fused(row, at[c], total[b][c]);
            }
        }
        for (int b = 0; b < B; ++b)
            for (int c = 0; c < C; ++c) {
                const Lanes left = wide(own + c * apart + 4 * b) - total[b][c];
                std::memcpy(own + c * apart + 4 * b, &left, sizeof left);
            }
    }

    // The same for all columns up to `end`, a multiple of four.
    template <int C>
    static void take_all(const double *P, int64_t stride, int64_t count, const double *x, int64_t between, double *own,
                         int64_t apart, int64_t end) {
        constexpr int B = C == 4 ? 2 : 4;
        int64_t p = 0;
        for (; p + 4 * B <= end; p += 4 * B) take<B, C>(P + p, stride, count, x, between, own + p, apart);
        if (B == 4 && p + 8 <= end) take<2, C>(P + p, stride, count, x, between, own + p, apart), p += 8;
        if (p < end) take<1, C>(P + p, stride, count, x, between, own + p, apart);
    }

    // x becomes L⁻ᵀ x at a supernode's columns, where its rows have it; of C vectors.
    template <int C>
    void backward(size_t s, double *x) const {
        const int64_t k = width(s), r = below(s), stride = padded(k), apart = length();
        const double *P = &panels[size_t(panel_begins[s])] + triangle(stride);
        const Index *const under = &rows[size_t(row_begins[s])];
        double *const own = x + begins[s];
        for (int64_t from = 0; from < r; from += GATHERED) {
            const int64_t some = std::min(GATHERED, r - from);
            double gathered[C * GATHERED];
            for (int c = 0; c < C; ++c)
                for (int64_t i = 0; i < some; ++i) gathered[c * GATHERED + i] = x[c * apart + under[from + i]];
            take_all<C>(P + from * stride, stride, some, gathered, GATHERED, own, apart, stride);
        }
        for (int64_t j = stride - 4; j >= 0; j -= 4) {
            const int64_t some = std::min(int64_t(4), k - j);
            P -= 4 * (j + 4);
            for (int64_t i = some; i-- > 0;)
                for (int c = 0; c < C; ++c) {
                    double *const at = own + c * apart + j, left = at[i];
                    for (int64_t p = i + 1; p < some; ++p) left -= P[p * (j + 4) + j + i] * at[p];
                    at[i] = left * P[i * (j + 4) + j + i];
                }
            take_all<C>(P, j + 4, some, own + j, apart, own, apart, j);
        }
    }

    template <int C>
    static bool is_zero(const double *y, int64_t count, int64_t apart) {
        for (int c = 0; c < C; ++c)
            for (int64_t k = 0; k < count; ++k)
                if (y[c * apart + k] != 0.0) return false;
        return true;
    }

    // Of a vector: the last columns are followed by three more, which are read and not used.
    int64_t length() const { return n + 3; }

    // Forward over some supernodes and backward over others, for `count` vectors.
    void sweep(const std::vector<Index> &up, const std::vector<Index> &down, double *y, int64_t count) const {
        const auto in_fours = [&](const auto &work) {  // while a panel is at hand
            int64_t c = 0;
            for (; c + 4 <= count; c += 4) work(y + c * length(), std::integral_constant<int, 4>{});
            if (count - c == 3) work(y + c * length(), std::integral_constant<int, 3>{});
            if (count - c == 2) work(y + c * length(), std::integral_constant<int, 2>{});
            if (count - c == 1) work(y + c * length(), std::integral_constant<int, 1>{});
        };
        for (const Index s : up) in_fours([&](double *some, auto C) { forward<C()>(size_t(s), some); });
        for (size_t k = down.size(); k-- > 0;)
            in_fours([&](double *some, auto C) { backward<C()>(size_t(down[k]), some); });
    }
};

Cholesky &known(int64_t handle) { return *reinterpret_cast<Cholesky *>(handle); }

}  // namespace

// 0 if there is not enough memory for some work; else what it returns.
template <class Work>
static int64_t in_memory(const Work &work) {
    try {
        return work();
    } catch (const std::exception &) {  // of vectors, which throw nothing else
        return 0;
    }
}

// A factor of a symmetric matrix in CSR, whose pattern is symmetric, lives until it is released. 0: no memory for it.
static int64_t analyse(In<int32_t, 1> start, In<int32_t, 1> column) {
    return in_memory([&] { return reinterpret_cast<int64_t>(new Cholesky(start, column)); });
}
EXPORT(cholesky_analyse, analyse)

static void release(int64_t factor) { delete &known(factor); }
EXPORT(cholesky_release, release)

// 0: there is not enough memory. 1: done. 2: a pivot is not positive.
static int64_t factorise(int64_t factor, In<double, 1> data) {
    return in_memory([&] { return known(factor).factorise(data.data) ? 1 : 2; });
}
EXPORT(cholesky_factorise, factorise)

// These return whether there is enough memory.
static int64_t solve(int64_t factor, In<double, 2> b, Out<double, 2> x) {
    return in_memory([&] { return known(factor).solve(b.data, x.data, b.shape[1]), 1; });
}
EXPORT(cholesky_solve, solve)

// Entries of A⁻¹ at some rows and columns.
static int64_t inverse(int64_t factor, In<int64_t, 1> rows, In<int64_t, 1> columns, Out<double, 2> out) {
    return in_memory([&] { return known(factor).inverse(rows, columns, out), 1; });
}
EXPORT(cholesky_inverse, inverse)

static int64_t entries(int64_t factor) { return known(factor).entries(); }
EXPORT(cholesky_entries, entries)

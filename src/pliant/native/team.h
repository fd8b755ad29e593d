// Threads that share the steps of one kernel: for loops of many short steps, where each would wake threads anew.
//
//     Team team(threads);
//     team.share(count, 256, [&](int64_t begin, int64_t end) { ... });
//
// Spans are the same for every number of threads, and handed out as threads come for them: one that is late, or never
// comes, holds nobody up, and the caller does its work.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "native/kernel.h"

class Team {
   public:
    // threads: together with the caller's.
    explicit Team(int64_t threads) {
        try {
            for (int64_t k = 1; k < threads; ++k) others.emplace_back([this] { help(); });
        } catch (const std::exception &) {  // no more threads: those that there are do it
        }
    }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;
    ~Team() {
        over.store(true, std::memory_order_release);
        for (std::thread &other : others) other.join();
    }

    // Calls work(begin, end) for spans of `span` that cover 0 to `count`; returns when all are done.
    template <class Work>
    void share(int64_t count, int64_t span, const Work &work) {
        if (others.empty() || count <= span) {
            if (count > 0) work(int64_t(0), count);
            return;
        }
        const uint32_t spans = uint32_t((count + span - 1) / span);
        const Task task = {[](const void *it, int64_t a, int64_t b) { (*static_cast<const Work *>(it))(a, b); },
                           &work, count, span};
        current.store(&task, std::memory_order_relaxed);
        waiting.store(int64_t(spans), std::memory_order_relaxed);
        turn = turn + 1;
        tickets.store(uint64_t(turn) << 32 | spans, std::memory_order_release);
        while (take()) {
        }
        while (waiting.load(std::memory_order_acquire) > 0) std::this_thread::yield();
    }

   private:
    struct Task {
        void (*call)(const void *, int64_t, int64_t);
        const void *work;
        int64_t count, span;
    };

    std::vector<std::thread> others;
    std::atomic<bool> over{false};
    std::atomic<const Task *> current{nullptr};
    std::atomic<int64_t> waiting{0};   // spans that are not done
    std::atomic<uint64_t> tickets{0};  // number of the task, and how many of its spans nobody has taken
    uint32_t turn = 0;

    // Does one span, if there is one. A task lives until its spans are done, so whoever has taken one may read it.
    bool take() {
        uint64_t ticket = tickets.load(std::memory_order_acquire);
        const Task *task;
        do {
            if (uint32_t(ticket) == 0) return false;
            task = current.load(std::memory_order_relaxed);
        } while (!tickets.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel));
        const int64_t begin = (int64_t(uint32_t(ticket)) - 1) * task->span;
        task->call(task->work, begin, begin + task->span < task->count ? begin + task->span : task->count);
        waiting.fetch_sub(1, std::memory_order_release);
        return true;
    }

    // Looks for work, and after a while less often: threads that wait awake take time from those that work.
    void help() {
        for (int idle = 0; !over.load(std::memory_order_acquire);) {
            if (take()) idle = 0;
            else if (++idle < 100) std::this_thread::yield();
            else std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
};

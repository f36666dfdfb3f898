import CSimulation
import Core
import HeapModule
import TestSupport

/// Runs all tasks, timers and dispatch queues of the process on one thread, in an order that follows from a seed, and advances the virtual clock.
///
///     task, block ──▶ ready ──(drawn)──▶ runs to its next suspension
///                       ▲
///     timer ──(time)────┘     the clock advances to the next timer when nothing is ready
///
/// The blocks of a queue keep their order. A queue has a latency, so that a disk can be slow; time also passes with each step.
///
/// Work belongs to the run of the node in which it was made, its **life**, so that one of several nodes can be killed or suspended.
final class Scheduler {
    private typealias Function = @convention(c) (UnsafeMutableRawPointer?) -> Void

    private enum Work {
        case job(UnsafeMutableRawPointer)
        case block(UnsafeMutableRawPointer, queue: UnsafeMutableRawPointer)
        case function(Function, UnsafeMutableRawPointer?)
        /// Belongs to the environment of the node, so that it survives a crash.
        case event(() -> Void)
    }

    private struct Entry {
        let work: Work
        /// The run of the node that it belongs to; nil for an event, and for the server that several nodes share.
        let life: Int?
        var number = 0

        var queue: UnsafeMutableRawPointer? { if case .block(_, let queue) = work { queue } else { nil } }
    }

    /// Ordered by time, then by insertion. Not an `EventQueue`, which is not specialized in this module: that took a tenth of a run.
    private struct Timer: Comparable {
        let time: Int64
        let number: Int
        let entry: Entry

        static func == (left: Timer, right: Timer) -> Bool { left.number == right.number }
        static func < (left: Timer, right: Timer) -> Bool {
            left.time == right.time ? left.number < right.number : left.time < right.time
        }
    }

    private struct Queue {
        let label: String
        /// Whether it belongs to the server that several nodes share.
        let isServer: Bool
        /// Dispatch's own queues belong to no run.
        let isGlobal: Bool
        /// When its last block becomes ready.
        var time: Int64 = 0
        /// The run that it belongs to.
        var life: Int?
    }

    /// Set by ``start(seed:)``: C functions can't capture.
    nonisolated(unsafe) private static var running: Scheduler?

    private var generator: SeededGenerator
    private var ready: [Entry] = []
    private var timers = Heap<Timer>()
    private var timerCount = 0
    private var queues: [UnsafeMutableRawPointer: Queue] = [:]
    private var lastLife = 0
    /// The runs that have not ended, as many as there are nodes.
    private var lives: [Int] = []
    /// The work that is ready in suspended runs.
    private var suspended: [Int: [Entry]] = [:]
    /// The run in which work is made at present.
    private var current: Int?
    private var added = 0
    private(set) var stepCount = 0

    /// The delay of a block, by the label of its queue.
    var latency: (String) -> Int64 = { _ in 0 }
    /// Whether the queue belongs to the server that several nodes share.
    var isServer: (String) -> Bool = { _ in false }
    /// Called after each step.
    var stepped: () -> Void = {}
    var isStopped = false
    /// Prints each step, to find where two runs begin to differ.
    var isTracing = false

    private init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    /// Takes over the process.
    static func start(seed: UInt64) -> Scheduler {
        let scheduler = Scheduler(seed: seed)
        running = scheduler
        simulation_begin(
            seed,
            simulation_scheduler(
                task_ready: { job in Scheduler.running?.makeReady(.job(job)) },
                block_submitted: { queue, block in Scheduler.running?.submit(block, to: queue) },
                timer_set: { time, function, context in Scheduler.running?.add(.function(function, context), at: time) },
                queue_awaited: { queue in Scheduler.running?.finish(queue) }))
        return scheduler
    }

    var now: Int64 { simulation_time() }

    /// Calls `event` after a delay.
    func after(_ delay: Duration, _ event: @escaping () -> Void) {
        add(Entry(work: .event(event), life: nil), at: now + delay.nanoseconds)
    }

    // MARK: Runs of nodes

    /// - Returns: the number of a new run.
    func beginLife() -> Int {
        lastLife += 1
        lives.append(lastLife)
        return lastLife
    }

    /// Ends a run: nothing of it happens any more. Its memory is not freed.
    func end(_ life: Int) {
        lives.removeAll { $0 == life }
        suspended[life] = nil
        ready.removeAll { $0.life == life }
    }

    /// Nothing of the run happens until it is resumed.
    func suspend(_ life: Int) {
        guard lives.contains(life), suspended[life] == nil else { return }
        suspended[life] = ready.filter { $0.life == life }
        ready.removeAll { $0.life == life }
    }

    func resume(_ life: Int) {
        for entry in suspended.removeValue(forKey: life) ?? [] { ready.append(entry) }
    }

    /// Work that `body` makes ready belongs to the run.
    func within<Result>(_ life: Int, _ body: () throws -> Result) rethrows -> Result {
        let former = current
        current = life
        defer { current = former }
        return try body()
    }

    /// Runs until a time, or until ``isStopped``.
    func run(until end: Int64) {
        while !isStopped {
            makeTimersReady()
            if !ready.isEmpty {
                step()
            } else if let next = timers.min?.time, next <= end {
                simulation_set_time(max(now, next))
            } else {
                return simulation_set_time(max(now, end))
            }
        }
    }

    // MARK: Work

    /// The run to which new work belongs. With one node, the environment makes work for it alone.
    private var owner: Int {
        if let current { return current }
        precondition(lives.count <= 1, "the environment made work for one of several nodes without naming it")
        return lives.first ?? 0
    }

    private func makeReady(_ work: Work) {
        makeReady(Entry(work: work, life: owner))
    }

    private func makeReady(_ entry: Entry) {
        var entry = entry
        entry.number = added
        added += 1
        if let life = entry.life {
            guard lives.contains(life) else { return }
            if suspended[life] != nil {
                suspended[life]?.append(entry)
                return
            }
        }
        ready.append(entry)
    }

    private func add(_ work: Work, at time: Int64) {
        add(Entry(work: work, life: owner), at: time)
    }

    private func add(_ entry: Entry, at time: Int64) {
        timers.insert(Timer(time: time, number: timerCount, entry: entry))
        timerCount += 1
    }

    private func makeTimersReady() {
        while let next = timers.min?.time, next <= now { makeReady(timers.removeMin().entry) }
    }

    private func submit(_ block: UnsafeMutableRawPointer, to queue: UnsafeMutableRawPointer) {
        var known = queues[queue] ?? makeQueue(queue)
        known.time = max(now + latency(known.label), known.time)
        // The server's work continues at queues of the nodes.
        let life: Int? = known.isServer ? nil : known.life ?? owner
        if !known.isGlobal { known.life = life }
        queues[queue] = known
        add(Entry(work: .block(block, queue: queue), life: life), at: known.time)
    }

    private func makeQueue(_ queue: UnsafeMutableRawPointer) -> Queue {
        let label = simulation_label(queue).map { String(cString: $0) } ?? ""
        return Queue(label: label, isServer: isServer(label), isGlobal: label.hasPrefix("com.apple.root."))
    }

    /// Runs the blocks of a queue that were submitted before.
    private func finish(_ queue: UnsafeMutableRawPointer) {
        while let time = queues[queue]?.time, time > now || ready.contains(where: { $0.queue == queue }) {
            simulation_set_time(max(now, time))
            // Timers of other work that pass meanwhile become ready in their order.
            makeTimersReady()
            guard let index = first(of: queue) else { break }
            run(ready.remove(at: index))
        }
    }

    private func first(of queue: UnsafeMutableRawPointer) -> Int? {
        ready.indices.filter { ready[$0].queue == queue }.min { ready[$0].number < ready[$1].number }
    }

    private func step() {
        var index = Int.random(in: ready.indices, using: &generator)
        if let queue = ready[index].queue, let first = first(of: queue) { index = first }
        let last = ready.count - 1
        ready.swapAt(index, last)
        run(ready.removeLast())
        stepCount += 1
        simulation_set_time(now + Int64.random(in: 500...20_000, using: &generator))
        stepped()
    }

    private func run(_ entry: Entry) {
        if isTracing { print("\(now) step \(stepCount) of \(ready.count + 1), life \(entry.life ?? 0): \(entry.work)") }
        let former = current
        current = entry.life
        defer { current = former }
        switch entry.work {
        case .job(let job): simulation_run_job(job)
        case .block(let block, _): simulation_run_block(block)
        case .function(let function, let context): function(context)
        case .event(let event): event()
        }
    }
}

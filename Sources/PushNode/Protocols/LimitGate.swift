package import NodeMetrics
import Synchronization

/// Limits that messages are checked against from any thread. Counts refusals.
///
/// `Limiter` has the rates and their state; `Refusal` names the limit that was exceeded. Each protocol has a gate of its own.
package final class LimitGate<Limiter: Sendable, Limits: Equatable & Sendable, Refusal: Sendable>: Sendable {
    private struct State: Sendable {
        var limits: Limits
        var limiter: Limiter
    }

    private let state: Mutex<State>
    /// Whether there are no limits, so that no lock is needed.
    private let isOpen: Atomic<Bool>
    private let none: Limits
    private let make: @Sendable (Limits) -> Limiter
    private let counter: @Sendable (Refusal) -> Counter
    private let counters = Mutex<Counters?>(nil)
    /// Number of registered devices, if that is limited: counted periodically, and increased with new ones.
    private let deviceCount = Atomic(0)

    /// - Parameters:
    ///   - limits: What to begin with.
    ///   - none: Limits that admit everything.
    ///   - make: Makes a limiter whose senders have full rates.
    ///   - counter: Where a refusal is counted.
    package init(
        _ limits: Limits, none: Limits, make: @escaping @Sendable (Limits) -> Limiter, counter: @escaping @Sendable (Refusal) -> Counter
    ) {
        state = Mutex(State(limits: limits, limiter: make(limits)))
        isOpen = Atomic(limits == none)
        self.none = none
        self.make = make
        self.counter = counter
    }

    /// Sets the counters for refusals.
    package func count(with counters: Counters) {
        self.counters.withLock { $0 = counters }
    }

    package var limits: Limits { state.withLock(\.limits) }

    /// Whether everything is admitted.
    package var admitsAll: Bool { isOpen.load(ordering: .acquiring) }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        state.withLock { if $0.limits != limits { $0 = State(limits: limits, limiter: make(limits)) } }
        isOpen.store(limits == none, ordering: .releasing)
    }

    /// - Throws: ``Drop`` if a limit is exceeded.
    package func admit(_ ask: (inout Limiter) -> Refusal?) throws(Drop) {
        if refuses(ask) { throw Drop(.droppedLimited) }
    }

    package func refuses(_ ask: (inout Limiter) -> Refusal?) -> Bool {
        guard !admitsAll, let refusal = state.withLock({ ask(&$0.limiter) }) else { return false }
        counters.withLock(\.self)?.add(counter(refusal))
        return true
    }

    // MARK: Registered devices

    /// - Parameters:
    ///   - devices: How many devices are to be registered.
    ///   - ask: Asks the limiter, which is told how many are registered.
    package func refusesNew(devices: Int = 1, _ ask: (inout Limiter, _ registered: Int) -> Refusal?) -> Bool {
        let registered = deviceCount.load(ordering: .relaxed)
        let isRefused = refuses { ask(&$0, registered) }
        if !isRefused { deviceCount.add(devices, ordering: .relaxed) }
        return isRefused
    }

    package func counted(devices count: Int) {
        deviceCount.store(count, ordering: .relaxed)
    }
}

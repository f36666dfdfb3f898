import Core
import NIOCore

/// Gives the ``InputGate``s of a listener's connections on one event loop their turns. ``InputTurns`` decides.
final class InputScheduler {
    private let loop: any EventLoop
    private var turns = InputTurns<ObjectIdentifier>()
    /// Those that wait for a turn.
    private var waiting: [ObjectIdentifier: InputGate] = [:]
    private var isScheduled = false
    /// The price of the parts of a piece that is being parsed.
    private var cost = 0

    init(on loop: any EventLoop) {
        self.loop = loop
    }

    /// Whether a gate may pass bytes on now. If not, ``InputGate/takeTurn()`` is called later.
    func admits(_ gate: InputGate, of network: AddressRange?) -> Bool {
        if turns.admits(at: loop.now) { return true }
        waiting[ObjectIdentifier(gate)] = gate
        turns.append(ObjectIdentifier(gate), of: network)
        schedule()
        return false
    }

    /// Carries out the parsing of a piece, during which its parts are counted.
    func parse(_ piece: () -> Void) {
        let start = loop.now
        cost = 0
        piece()
        turns.charge(cost, from: start, to: loop.now)
    }

    func count(_ cost: Int) { self.cost += cost }

    func closed(_ gate: InputGate) { waiting[ObjectIdentifier(gate)] = nil }

    private func schedule() {
        guard !isScheduled, let time = turns.nextTurn(after: loop.now) else { return }
        isScheduled = true
        loop.assumeIsolated().scheduleTask(deadline: time) { self.run() }
    }

    private func run() {
        isScheduled = false
        let now = loop.now
        while let next = turns.popFirst(at: now) { waiting.removeValue(forKey: next)?.takeTurn() }
        schedule()
    }
}

@available(*, unavailable)
extension InputScheduler: Sendable {}

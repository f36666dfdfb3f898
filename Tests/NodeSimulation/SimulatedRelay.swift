import Core
import Waku

/// The relay of one run of the node. The environment decides which messages are delivered when, and the outcome of a publication.
///
/// Everything runs on one thread, so its state needs no lock.
final class SimulatedRelay: Relay, @unchecked Sendable {
    private let world: World
    private let process: NodeProcess
    private let life: Int
    private var feed: AsyncStream<[ReceivedMessage]>.Continuation?

    init(_ world: World, of process: NodeProcess) {
        self.world = world
        self.process = process
        life = process.life
    }

    /// Whether the node listens.
    var isAttached: Bool { feed != nil }
    var name: String { "simulated" }
    var state: RelayState { feed == nil ? .detached("not yet running") : .attached }

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        let (stream, feed) = AsyncStream.makeStream(of: [ReceivedMessage].self)
        self.feed = feed
        world.attached(process, life)
        for await batch in stream { await deliver(batch) }
        self.feed = nil
    }

    /// False while the node does not listen.
    func deliver(_ message: ReceivedMessage) -> Bool {
        guard let feed else { return false }
        world.scheduler.within(life) { _ = feed.yield([message]) }
        return true
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let (delay, isAccepted) = world.publication(of: message)
        await world.pause(delay)
        guard isAccepted else { throw RelayError(code: .unavailable, message: "the simulated relay has no peers") }
        if world.options.mistake == .lostPublications, world.chance(0.05) { return .confirmed }
        world.published(message)
        return .confirmed
    }
}

import Dispatch
import Logging
import Core
import Synchronization

/// Gets the map of storage servers from an oxend. The driver of an ``OxendMapStateMachine``.
final class OxendMap: Sendable {
    private struct State {
        var source: OxendMapStateMachine
        var client: (any OxenMQConnections)?
        /// The tag of the last request for the list.
        var serversTag: RequestTag?
        /// Whether an unavailable oxend was logged, so that it is logged once.
        var isFailureLogged = false
    }

    private let address: OxenAddress
    private let connect: MakeOxenMQConnections
    private let logger: Logger
    private let alarm: Alarm
    private let state: Mutex<State>

    init(
        _ address: OxenAddress, connect: @escaping MakeOxenMQConnections, configuration: OxendMapStateMachine.Configuration,
        queue: DispatchQueue,
        logger: Logger
    ) {
        (self.address, self.connect, self.logger) = (address, connect, logger)
        alarm = Alarm(on: queue)
        state = Mutex(State(source: OxendMapStateMachine(configuration: configuration, at: .now)))
    }

    var isConnected: Bool { state.withLock { $0.source.isConnected } }

    /// Runs until the task is cancelled. May be called once.
    ///
    /// - Parameter use: Called with every received list, on any thread.
    func run(_ use: @escaping @Sendable (StorageServerList) -> Void) async {
        let client = connect(.oxend) { [weak self] connection, event in
            self?.handle(connection, event, use)
            return .proceed
        }
        state.withLock { $0.client = client }
        change { $0.source.advance(to: $1) }
        for await _ in WakeUpSignal() {}
        await client.shutDown()
        state.withLock { $0.client = nil }
    }

    /// Requests the list again because it may have changed.
    func want() {
        change { $0.source.want(at: $1) }
    }

    private func change(_ body: (inout State, Instant) -> Void) {
        let wakeUp = state.withLock { state -> Instant? in
            body(&state, .now)
            guard let client = state.client else { return nil }
            for action in state.source.takeActions() { perform(action, state: &state, client: client) }
            return state.source.nextWakeUp
        }
        alarm.set(to: wakeUp) { [weak self] in
            self?.change { $0.source.advance(to: $1) }
        }
    }

    private func perform(_ action: OxendMapStateMachine.Action, state: inout State, client: any OxenMQConnections) {
        switch action {
        case .connect(let number): client.connect(number, to: address)
        case .close(let number):
            client.close(number)
            noteFailure("it does not answer", &state)
        case .requestServers(let number, let tag):
            state.serversTag = tag
            client.request(
                number, OxendMapStateMachine.serversCommand, tag: tag.bytes, body: Array(OxendMapStateMachine.serversBody.utf8))
        case .subscribeToBlocks(let number, let tag):
            client.request(number, OxendMapStateMachine.blockCommand, tag: tag.bytes, body: [])
        }
    }

    /// Runs on the client's thread, which also parses the list of service nodes.
    private func handle(_ number: ConnectionNumber, _ event: OxenMQClient.Event, _ use: (StorageServerList) -> Void) {
        switch event {
        case .hello:
            change { state, now in
                logger.info("oxend connected", metadata: ["address": "\(address.endpoint)"])
                state.isFailureLogged = false
                state.source.connected(number, at: now)
            }
        case .closed(let reason):
            change { state, now in
                noteFailure("\(reason)", &state)
                state.source.failed(number, at: now)
            }
        case .reply(let tag, let parts):
            guard let tag = RequestTag(tag) else { return }
            if state.withLock({ $0.serversTag == tag }) { received(parts, use) }
            change { $0.source.replied(tag, at: $1) }
        case .refused(let refusal, let tag, _):
            logger.warning("oxend refused a request", metadata: ["reason": "\(refusal.rawValue)"])
            if let tag = tag.flatMap({ RequestTag($0) }) { change { $0.source.replied(tag, at: $1) } }
        case .command(OxendMapStateMachine.blockNotice, _): want()
        case .command, .ignored: break
        }
    }

    /// `["200", json]`
    private func received(_ parts: [[UInt8]], _ use: (StorageServerList) -> Void) {
        guard parts.count == 2, parts[0].elementsEqual("200".utf8) else {
            return noteUnusable("the status is not 200")
        }
        do throws(StorageServerList.Malformed) {
            let list = try StorageServerList(parsingOxend: parts[1])
            // The list of an oxend that is still synchronizing is empty; that of a working one never is.
            guard !list.servers.isEmpty else { return noteUnusable("no entry has an address, a port and a swarm") }
            use(list)
        } catch {
            noteUnusable(error.description)
        }
    }

    private func noteUnusable(_ reason: String) {
        logger.warning("failed to use the oxend's service node list; swarm map unchanged", metadata: ["reason": "\(reason)"])
    }

    private func noteFailure(_ reason: String, _ state: inout State) {
        guard !state.isFailureLogged else { return }
        state.isFailureLogged = true
        logger.warning("oxend disconnected", metadata: ["address": "\(address.endpoint)", "reason": "\(reason)"])
    }
}

import Core
import Delivery
import NodeAPI
import Storage

/// Looks up registrants and notifications in the store, for the status page. Answers contain numbers, states and times: nothing that a client sent.
struct PageSearch: Sendable {
    typealias Line = PageFigures.ProtocolLines.Line

    private let store: any Store
    private let sources: DeliverySources
    /// The names of protocols that the node speaks.
    private let names: [ProtocolNumber: String]
    private let ids: NotificationIDCipher

    init(store: any Store, protocols: [any NodeProtocol], ids: NotificationIDCipher) {
        self.store = store
        self.ids = ids
        sources = DeliverySources(protocols.map { $0.makeDeliverySource(store.sealer) })
        names = Dictionary(uniqueKeysWithValues: protocols.map { ($0.number, $0.name) })
    }

    /// Empty if nothing is stored.
    func lines(for question: SearchQuestion) async throws(StoreError) -> [Line] {
        switch question {
        case .registrant(let hashes): try await lines(of: store.fetch(sources.devices(ofRegistrant: hashes)))
        case .notification(let id):
            if let prefix = DeliveryID.prefix(of: id, ids) {
                try await lines(of: store.fetch(DeliveryStorage.traces(of: prefix)))
            } else {
                []
            }
        }
    }

    // MARK: Registrants

    private func lines(of devices: [DeviceID]) async throws(StoreError) -> [Line] {
        let versions = try await store.fetch(sources.versions(of: devices))
        let registered = versions.keys.sorted { ($0.protocol.rawValue, $0.row) < ($1.protocol.rawValue, $1.row) }
        let doubts = try await store.fetch(StoreCommand.each(registered.map { DeliveryStorage.doubt(of: $0) }))
        let waiting = try await store.fetch(DeliveryStorage.waitingCounts(of: registered))
        var found: [ProtocolNumber: Registered] = [:]
        for (device, doubt) in zip(registered, doubts) {
            found[device.protocol, default: Registered()].add(
                isInDoubt: doubt.map { $0.version == versions[device] } ?? false, waiting: waiting[device] ?? 0)
        }
        return found.sorted { $0.key.rawValue < $1.key.rawValue }.map { Line(name: name($0.key), value: $0.value.text) }
    }

    private struct Registered {
        private var devices = 0
        private var inDoubt = 0
        private var waiting = 0

        mutating func add(isInDoubt: Bool, waiting: Int) {
            devices += 1
            inDoubt += isInDoubt ? 1 : 0
            self.waiting += waiting
        }

        var text: String {
            "\(devices) \(devices == 1 ? "device" : "devices") registered, \(inDoubt) with a token in doubt; \(waiting) "
                + (waiting == 1 ? "notification waits" : "notifications wait")
        }
    }

    // MARK: Notifications

    private func lines(of traces: [DeliveryTrace]) async throws(StoreError) -> [Line] {
        let versions = try await store.fetch(sources.versions(of: traces.map(\.device)))
        return traces.map { trace in
            let device = versions[trace.device] == nil ? "; its device is no longer registered" : ""
            return Line(name: name(trace.device.protocol), value: Self.text(trace.state) + device)
        }
    }

    private static func text(_ state: DeliveryTrace.State) -> String {
        switch state {
        case .waiting(_, let expires, let markedAt):
            "waits, until \(expires.clock) UTC; " + (markedAt.map { "first post at \($0.clock) UTC" } ?? "no post was begun")
        case .accepted(let time, _, let hasFailed):
            "accepted at \(time.clock) UTC" + (hasFailed ? "; a failure of its token was reported later" : "")
        }
    }

    private func name(_ number: ProtocolNumber) -> String { names[number] ?? "\(number.rawValue)" }
}

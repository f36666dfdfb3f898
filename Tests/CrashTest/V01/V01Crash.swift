import Storage
import WakuCrypto

/// The version 0.1 part of a ``CrashRun``.
struct V01Crash: Sendable {
    /// Arguments of the daemon.
    static let arguments = ["--status-v0.1"]
    private static let phoneCount = 3
    private static let repeatedPercentage = 10

    private let phones: [V01Phone]
    private let seed: UInt64

    init(_ stage: Stage, seed: UInt64) {
        self.seed = seed
        phones = (0..<Self.phoneCount).map { number in
            let relay = RepeatingRelay(stage.network, percentage: Self.repeatedPercentage, seed: seed &+ 500 &+ UInt64(number))
            return V01Phone(number, server: stage.server, relay: relay, posts: stage.gorush.v01Posts, mayFailToStore: stage.mayFailToStore)
        }
    }

    /// Runs until ``stop()``.
    func live() async {
        await withDiscardingTaskGroup { group in
            for (index, phone) in phones.enumerated() {
                group.addTask { await phone.live(seed &+ 2000 &+ UInt64(index)) }
            }
        }
    }

    func stop() {
        for phone in phones { phone.stop() }
    }

    func check(_ store: any Store, _ place: String) throws {
        for phone in phones { try phone.check(store, place) }
        try complain()
    }

    func checkAllDelivered() throws {
        for phone in phones { phone.checkAllDelivered() }
        try complain()
    }

    private func complain() throws {
        let broken = phones.flatMap(\.broken)
        guard broken.isEmpty else { throw Failed("version 0.1:\n" + broken.prefix(50).joined(separator: "\n")) }
    }
}

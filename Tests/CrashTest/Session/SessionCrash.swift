import Core
import SessionProtocol
import SessionStandIns
import Storage
import TestSupport

/// Session's part of a ``CrashRun``.
struct SessionCrash: Sendable {
    private static let phoneCount = 3
    /// The time limit for steps that take milliseconds on an idle machine.
    private static let limit = Duration.seconds(60)

    private let stage: SessionStage
    private let ledger = SessionLedgerBox()
    private let phones: [SessionPhone]
    private let seed: UInt64

    /// Returns nil, and prints so, when libsodium is not installed.
    static func make(in stage: Stage, seed: UInt64) async throws -> SessionCrash? {
        do {
            return try SessionCrash(try await SessionStage(in: stage.folder.path), stage.gorush, seed: seed)
        } catch let error as OptionalLibraryError {
            print("Session is left out: \(error)")
            return nil
        }
    }

    private init(_ stage: SessionStage, _ gorush: GorushStandIn, seed: UInt64) throws {
        (self.stage, self.seed) = (stage, seed)
        phones = try (0..<Self.phoneCount).map { [ledger] in try SessionPhone($0, stage: stage, ledger: ledger) }
        gorush.observeSession(
            SessionPosts(
                posted: { [ledger, sodium = stage.sodium] posts, daemon in
                    ledger.withLock { ledger in posts.compactMap { ledger.posted($0, by: daemon, sodium) } }
                },
                replied: { [ledger] keys, daemon in
                    let now = ContinuousClock.now
                    ledger.withLock { ledger in for key in keys { ledger.replied(to: key, by: daemon, at: now) } }
                }))
    }

    var figures: Figures { ledger.withLock { $0.figures } }

    // MARK: Daemons

    /// The arguments of the next daemon.
    func arguments() throws -> [String] { try stage.arguments() }

    func started() { ledger.withLock { $0.started() } }

    func ended(_ daemon: Int, _ end: DaemonEnd) {
        ledger.withLock { $0.ended(daemon, end) }
        stage.servers.forgetConnections()
    }

    func shutDown() async { await stage.shutDown() }

    // MARK: Load

    /// Runs until ``stop()``.
    func live() async {
        await withDiscardingTaskGroup { group in
            for (index, phone) in phones.enumerated() {
                group.addTask { await phone.live(seed &+ 3000 &+ UInt64(index)) }
            }
        }
    }

    func stop() {
        for phone in phones { phone.stop() }
    }

    // MARK: Checks

    /// Checks the database of a killed or running daemon.
    func check(_ store: any Store, _ place: String, daemon: Int, isDead: Bool) throws {
        let before = ledger.copy
        let findings = try SessionFindings(of: before, Array(before.notices.keys), in: store)
        ledger.withLock { $0.check(findings, place, before: before, daemon: daemon, isDead: isDead) }
        try complain()
    }

    /// Checks a ready daemon: all accounts are monitored again, and a new message is notified to each subscribed device.
    ///
    /// - Parameter mustBePosted: gorush accepts everything: being in the outbox is not enough.
    func checkMonitoring(_ store: any Store, mustBePosted: Bool = false) async throws {
        for phone in phones {
            try await wait("an account with a subscription is not monitored") {
                guard hasSubscription(phone.account) else { return true }
                return stage.servers.isMonitored(phone.account)
            }
            guard stage.servers.isMonitored(phone.account) else { continue }
            ledger.withLock { $0.figures.add(.sessionMonitored) }
            let message = phone.message(in: 0, byteCount: 100)
            let (expected, before) = ledger.withLock { ($0.reporting(message), $0) }
            guard stage.servers.report(message) > 0 else { throw Failed("Session: a monitored account has no connection") }
            try await wait("a reported message is not notified") {
                let open = ledger.withLock { ledger in
                    expected.filter { key in
                        ledger.notices[key]?.history.isPosted == false
                            && ledger.devices[key.device].highest == before.devices[key.device].highest
                    }
                }
                if open.isEmpty || mustBePosted { return open.isEmpty }
                let findings = try SessionFindings(of: before, open, in: store)
                return open.allSatisfy { findings.states[$0] != nil }
            }
            ledger.withLock { $0.figures.add(.sessionNotified, expected.count) }
        }
        try complain()
    }

    private func hasSubscription(_ account: AccountID) -> Bool {
        ledger.withLock { ledger in ledger.devices.contains { $0.account == account && $0.subscription != nil } }
    }

    private func wait(_ failure: String, _ condition: () throws -> Bool) async throws {
        let deadline = ContinuousClock.now + Self.limit
        while try !condition() {
            guard ContinuousClock.now < deadline else { throw Failed("Session: \(failure)") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    func checkAllDelivered() throws {
        ledger.withLock { $0.checkAllDelivered() }
        try complain()
    }

    private func complain() throws {
        let broken = ledger.withLock { $0.broken }
        guard broken.isEmpty else { throw Failed("Session:\n" + broken.prefix(50).joined(separator: "\n")) }
    }
}

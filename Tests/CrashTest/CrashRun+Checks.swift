import NodeAssembly
import Delivery
import Foundation
import GRDB
import StatusProtocol
import Storage
import Synchronization
import TestSupport
import WakuCrypto

/// Checks of the daemon's promises.
extension CrashRun {
    /// Examines the database of a killed daemon before another one can repair it: everything promised must be present.
    func examine(_ daemon: DaemonProcess) async throws {
        let before = ledger.copy
        // If killed during its first start, it may have no tables yet.
        guard before.devices.contains(where: { $0.floor > 0 }) else { return }
        if stage.location != .dataFolder { return try examine(stage.leftStore(), before, after: daemon) }
        let copy = stage.folder.path + "/copy"
        try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        for name in ["waku-push.sqlite", "waku-push.sqlite-wal"] where FileManager.default.fileExists(atPath: stage.dataPath + "/" + name) {
            try FileManager.default.copyItem(atPath: stage.dataPath + "/" + name, toPath: copy + "/" + name)
        }
        let database = try DatabaseQueue(path: DataFolder.databasePath(in: copy))
        let complaints = try await database.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
        guard complaints == ["ok"] else { throw Failed("the database is damaged: \(complaints)") }
        try database.close()
        try examine(stage.store(at: copy), before, after: daemon)
    }

    private func examine(_ store: any Store, _ before: Ledger, after daemon: DaemonProcess) throws {
        let findings = try Findings(of: before, in: store)
        try v01.check(store, "on disk after daemon \(daemon.number)")
        try session?.check(store, "on disk after daemon \(daemon.number)", daemon: daemon.number, isDead: true)
        try store.close()
        ledger.withLock { ledger in
            ledger.figures.add(.databaseChecks)
            ledger.check(findings, "on disk after daemon \(daemon.number)", before: before, daemon: daemon.number)
        }
    }

    /// Checks the database of a running daemon, and its answers to some clients.
    func check(_ daemon: DaemonProcess, _ generator: inout SeededGenerator, isLast: Bool = false) async throws {
        let sample = isLast ? Int.max : 2
        let before = ledger.copy
        let store = try stage.store()
        let findings = try Findings(of: before, in: store)
        try v01.check(store, "with daemon \(daemon.number)")
        try session?.check(store, "with daemon \(daemon.number)", daemon: daemon.number, isDead: false)
        try await session?.checkMonitoring(store, mustBePosted: isLast)
        try store.close()
        ledger.withLock { ledger in
            ledger.figures.add(.databaseChecks)
            ledger.check(findings, "with daemon \(daemon.number)", before: before, daemon: daemon.number)
        }
        let asked = phones.shuffled(using: &generator).prefix(sample)
        let refused = before.devices.indices.filter { before.devices[$0].floor > 0 }.shuffled(using: &generator).prefix(sample)
        try await withThrowingTaskGroup(of: Void.self) { group in
            let check = LiveCheck(server: stage.server, ledger: ledger)
            for phone in asked { group.addTask { try await check.find(phone) } }
            for device in refused {
                guard let phone = phones.first(where: { KeyHash(of: $0.identity.publicKey) == before.devices[device].key.keyHash }) else {
                    continue
                }
                group.addTask { try await check.refusal(of: device, phone) }
            }
            try await group.waitForAll()
        }
    }

    /// - Throws: ``Failed`` after two minutes.
    private func wait(_ failure: String, until condition: () throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while try !condition() {
            guard ContinuousClock.now < deadline else { throw Failed(failure) }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Stops the load, and returns when every notification was posted.
    func awaitClientsAndOutbox() async throws {
        stopClients()
        // The clients' last requests are answered, or given up.
        try await wait("the clients do not end") { endedLoads.load(ordering: .relaxed) == 3 }
        let store = try stage.store()
        try await wait("the outbox does not get empty") { try store.read(DeliveryStorage.waitingCount()) == 0 }
        try store.close()
    }

    /// Starts a last daemon with a backlog and an empty network. With gorush available and no load, everything must be delivered.
    func finish(_ generator: inout SeededGenerator) async throws {
        stage.gorush.set(.failing)
        let last = try start()
        try await noteReady(last)
        await ledger.answers.wait(for: 60, limit: .seconds(2))
        try await kill(last)
        try await examine(last)
        forget()
        stage.gorush.set(.well(0...5))
        let daemon = try start()
        try await noteReady(daemon)
        try await awaitClientsAndOutbox()
        try await check(daemon, &generator, isLast: true)
        try await stop(daemon)
        try await examine(daemon)
        ledger.withLock { $0.checkAllDelivered() }
        try v01.checkAllDelivered()
        try session?.checkAllDelivered()
    }
}

import Core
import Logging
import NodeMetrics
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import Delivery

struct CertificateReadingTests {
    @Test func aCertificateIsReadAgainAlthoughNothingIsPosted() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part])
        let (gorush, counters) = (AcceptingGorush(certificateEnd: 4_102_444_800), Counters([.delivery, .feedback]))
        var configuration = DeliveryService.Configuration()
        configuration.certificateInterval = .zero
        let now = Timestamp(rawValue: 10)
        let service = DeliveryService(
            configuration, store: store, sources: DeliverySources([]), gorush: [GorushEndpoint(gorush)], counters: counters,
            alarms: Alarms(registry: counters.registry, now: { now }), logger: Logger(label: "test"), now: { now })
        let running = Task { await service.run() }
        // The first is that of the start.
        try await eventually { gorush.checkCount.withLock { $0 } > 1 }
        running.cancel()
        await running.value
    }
}

import Core
import Delivery
import StatusProtocol
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import StatusServer

/// Registrations that the node itself ends, while another node on the same database commits a renewal.
@Suite struct EndingTests {
    private let fixture: StatusStoreFixture
    private let key = StatusStoreFixture.key()

    init() throws {
        fixture = try StatusStoreFixture()
    }

    /// Commits a command, with a renewal after its first read.
    private func commit<Outcome>(_ command: StoreCommand<Outcome>) async throws -> Outcome {
        guard case .read(let reads, let next) = command else { throw TestFailure("no read") }
        let rows = try fixture.store.read(.read(reads) { .done($0) })
        try await fixture.store.register(key, version: 2, at: Timestamp(rawValue: 20))
        return try await fixture.store.commit(try next(rows))
    }

    private func expectRenewal() throws {
        #expect(try fixture.store.state(of: key)?.registration?.version == 2)
    }

    @Test func expiryLeavesARenewal() async throws {
        try await fixture.store.register(key)
        let isExpired = try await commit(
            Registrations.expire(key, unchangedSince: Timestamp(rawValue: 10), at: Timestamp(rawValue: 30)))
        #expect(!isExpired)
        try expectRenewal()
    }

    @Test func theEndOfADeviceLeavesARenewal() async throws {
        try await fixture.store.register(key)
        let row = try #require(try fixture.store.read(Registrations.head(of: key))).id
        try await commit(StatusDeliverySource(fixture.store.sealer).endDevice(row, version: 1, at: Timestamp(rawValue: 30)))
        try expectRenewal()
    }

    @Test func withoutARenewalBothEnd() async throws {
        for isExpiry in [true, false] {
            let key = StatusStoreFixture.key()
            try await fixture.store.register(key, version: 3)
            let row = try #require(try fixture.store.read(Registrations.head(of: key))).id
            if isExpiry {
                let expiry = Registrations.expire(key, unchangedSince: Timestamp(rawValue: 10), at: Timestamp(rawValue: 30))
                #expect(try await fixture.store.commit(expiry))
            } else {
                let source = StatusDeliverySource(fixture.store.sealer)
                try await fixture.store.commit(source.endDevice(row, version: 3, at: Timestamp(rawValue: 30)))
            }
            #expect(try fixture.store.state(of: key) == .tombstone(version: 3))
        }
    }

    /// A node of a release without the mark ended the registration, and left the mark.
    @Test func aTombstoneWithTheMarkOfARegistrationIsNotDisplaced() async throws {
        try await fixture.store.register(key)
        #expect(try fixture.store.read(Registrations.displaceable())?.key == key)
        let row = try #require(try fixture.store.read(Registrations.head(of: key))).id
        try await fixture.store.unregister(key, version: 2)
        let mark = Mutation(StatusStorage.registration, .updateAny([StatusStorage.neverAsked], where: [.equal(.id)]))
        try await fixture.store.commit(.change([mark(StatusStorage.NeverAsked.registered, .integer(row))]))
        #expect(try fixture.store.read(Registrations.displaceable())?.key == nil)
    }

    @Test func anOperatorWhoRemovesAnOldRowKeepsTheHigherVersion() async throws {
        try await fixture.store.register(key, version: 5)
        try await fixture.store.unregister(key, version: 4)
        #expect(try fixture.store.state(of: key) == .tombstone(version: 5))
    }
}

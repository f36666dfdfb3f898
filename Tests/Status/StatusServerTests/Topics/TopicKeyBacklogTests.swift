import StatusProtocol
import Testing

@testable import StatusServer

@Suite struct TopicKeyBacklogTests {
    private static let registrants = (0..<40).compactMap { KeyHash(bytes: [UInt8](repeating: UInt8($0), count: KeyHash.byteCount)) }

    @Test func theNewestRegistrantIsDerivedFirst() {
        var backlog = TopicKeyBacklog(limit: 100)
        for registrant in Self.registrants[..<10] { backlog.add(registrant) }
        #expect(backlog.next() == .derive(Self.registrants[2..<10].reversed()))
        backlog.add(Self.registrants[10])
        #expect(backlog.next() == .derive([Self.registrants[10], Self.registrants[1], Self.registrants[0]]))
    }

    @Test func theStoreIsScannedToItsEndOnceNothingWaits() {
        var backlog = TopicKeyBacklog(limit: 100)
        #expect(backlog.next() == .scan(before: nil))
        #expect(backlog.next() == nil)
        backlog.scanned([Self.registrants[1], Self.registrants[0]], next: 17)
        #expect(backlog.next() == .derive([Self.registrants[1], Self.registrants[0]]))
        #expect(backlog.next() == .scan(before: 17))
        backlog.scanned([], next: nil)
        #expect(backlog.next() == nil)
        backlog.add(Self.registrants[2])
        #expect(backlog.next() == .derive([Self.registrants[2]]))
        #expect(backlog.next() == nil)
    }

    @Test func registrantsOverTheLimitAreFoundInTheStoreLater() {
        var backlog = TopicKeyBacklog(limit: 8)
        #expect(backlog.next() == .scan(before: nil))
        for registrant in Self.registrants[..<9] { backlog.add(registrant) }
        #expect(backlog.count == 8)
        // The concurrent scan may have missed the registrant that was dropped.
        backlog.scanned([], next: nil)
        #expect(backlog.next() == .derive(Self.registrants[1..<9].reversed()))
        #expect(backlog.next() == .scan(before: nil))
        // Registrants found by a scan beyond the limit are found again.
        backlog.scanned(Array(Self.registrants[..<20]), next: 3)
        #expect(backlog.count == 8)
        #expect(backlog.next() == .derive(Array(Self.registrants[..<8])))
        #expect(backlog.next() == .scan(before: nil))
    }
}

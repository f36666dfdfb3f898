import Core
import Testing

@testable import Delivery

extension DeliveryTable {
    /// Records an issue where two of its stores disagree.
    func checkInvariants(sourceLocation: SourceLocation = #_sourceLocation) {
        func check(_ isTrue: Bool, _ rule: Comment) { #expect(isTrue, rule, sourceLocation: sourceLocation) }
        var (counts, references): ([DeviceID: Int], [WebPushOrigin: Int]) = ([:], [:])
        func refer(to endpoint: EndpointID) {
            if case .webPush(let origin) = endpoint { references[origin, default: 0] += 1 }
        }
        for entry in index.entries.values {
            counts[entry.device, default: 0] += 1
            refer(to: entry.endpoint)
        }
        let devices = index.devices.values
        for device in devices { refer(to: device.endpoint) }
        check(devices.allSatisfy { Set($0.former).count == $0.former.count }, "a former endpoint of a device stands once")
        check(devices.allSatisfy { !$0.former.contains($0.endpoint) }, "the endpoint of a device is no former one")
        check(index.ids == Dictionary(index.entries.map { ($1.delivery, $0) }) { _, last in last }, "each delivery has one row")
        check(index.ids.count == index.entries.count, "no two rows are of one delivery")
        check(index.devices.mapValues(\.count) == counts, "a device has the number of its deliveries")
        check(index.references == references, "a push service has the number of its deliveries and devices")
        check(references.keys.allSatisfy { origins.services[$0] != nil }, "a push service that is needed has a queue")
        let services = origins.services.values
        check(services.allSatisfy { $0.open == nil || $0.line == nil }, "an open push service waits for no place")
        check(services.allSatisfy { $0.counts.deliveries == $0.queue.count }, "the deliveries of a push service are counted")
        check(services.allSatisfy { $0.counts.inFlight == $0.queue.batchesInFlight }, "the posts of a push service are counted")
        check(services.reduce(0) { $0 + $1.queue.count } == origins.waitingCount, "the deliveries of all push services are counted")
        check(services.count { $0.open != nil } == origins.openCount, "the open push services are counted")
        check(Set(origins.services.filter { $1.isChanged }.keys) == Set(origins.changed), "a push service that changed is looked at")
        check(Set(origins.changed).count == origins.changed.count, "a push service that changed is looked at once")
    }
}

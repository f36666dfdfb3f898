import Core
import NodeMetrics

/// The endpoint of each delivery and each device: finds the deliveries of all queues by outbox id and by delivery id, and their devices.
///
/// A delivery stays in the index until its end is stored, which is longer than it stays in a queue.
///
///     device at an endpoint ──(registers for another)──▶ moving, with deliveries at former endpoints ──(all moved or ended)──▶ at an endpoint
struct DeliveryIndex {
    struct Entry {
        let delivery: DeliveryID
        let device: DeviceID
        var endpoint: EndpointID
        /// When it was put into the outbox, by the queue's clock; if that is not known, when it was queued.
        let since: Timestamp
        /// See ``DeliveryTable/Arrival/heldUntil``.
        let heldUntil: Timestamp?
        /// See ``QueuedDelivery/trace``.
        let trace: MessageTrace?
    }

    struct Device {
        /// Takes its next deliveries.
        var endpoint: EndpointID
        /// The number of its deliveries.
        var count = 0
        /// The endpoints that it has moved from while deliveries wait or are in flight there, the earliest first. A push service may be gone by now.
        var former: [EndpointID] = []
    }

    private(set) var entries: [Int64: Entry] = [:]
    private(set) var ids: [DeliveryID: Int64] = [:]
    /// The devices with deliveries.
    private(set) var devices: [DeviceID: Device] = [:]
    /// For each push service, the number of its deliveries and of the devices that it takes the next deliveries of.
    private(set) var references: [WebPushOrigin: Int] = [:]

    subscript(id: Int64) -> Entry? { entries[id] }

    func endpoint(of delivery: DeliveryID) -> EndpointID? { ids[delivery].flatMap { entries[$0]?.endpoint } }

    /// Whether any delivery or device needs the queue of a push service.
    func refers(to origin: WebPushOrigin) -> Bool { references[origin] != nil }

    /// Adds a delivery, and assigns its device to the same endpoint.
    ///
    /// - Precondition: neither the outbox id nor the delivery id is in the index.
    mutating func insert(_ id: Int64, _ entry: Entry) {
        entries[id] = entry
        ids[entry.delivery] = id
        count(1, at: entry.endpoint)
        var device = devices[entry.device] ?? Device(endpoint: entry.endpoint)
        if device.count == 0 || device.endpoint != entry.endpoint { count(1, at: entry.endpoint) }
        if device.endpoint != entry.endpoint {
            count(-1, at: device.endpoint)
            device.former = device.former.filter { $0 != entry.endpoint } + [device.endpoint]
            device.endpoint = entry.endpoint
        }
        device.count += 1
        devices[entry.device] = device
    }

    /// Assigns a delivery to another endpoint.
    mutating func move(_ id: Int64, to endpoint: EndpointID) {
        guard let former = entries[id]?.endpoint else { return }
        entries[id]?.endpoint = endpoint
        count(-1, at: former)
        count(1, at: endpoint)
    }

    mutating func removeFormer(_ endpoints: [EndpointID], of device: DeviceID) {
        devices[device]?.former.removeAll(where: endpoints.contains)
    }

    /// Returns the delivery and the endpoint of its device, which nothing may refer to from now on.
    mutating func remove(_ id: Int64) -> (entry: Entry, deviceEndpoint: EndpointID?)? {
        guard let entry = entries.removeValue(forKey: id) else { return nil }
        ids[entry.delivery] = nil
        count(-1, at: entry.endpoint)
        devices[entry.device]?.count -= 1
        guard let device = devices[entry.device], device.count == 0 else { return (entry, nil) }
        devices[entry.device] = nil
        count(-1, at: device.endpoint)
        return (entry, device.endpoint)
    }

    private mutating func count(_ change: Int, at endpoint: EndpointID) {
        guard case .webPush(let origin) = endpoint else { return }
        let count = references[origin, default: 0] + change
        references[origin] = count == 0 ? nil : count
    }
}

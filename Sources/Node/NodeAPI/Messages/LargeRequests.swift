/// The sizes of requests that are committed in parts, in devices: see ``WakuHandler/isLarge(_:)``. An entry is for a device, or in version 0.1 for the
/// devices of an account, of which there is one at least.
package enum LargeRequests {
    /// A request for more devices takes turns with others. A contact rarely has more devices.
    package static let smallCount = 8
    /// The number of devices that are decided in one transaction: 64 take 5 to 10 ms.
    package static let partCount = 64
}

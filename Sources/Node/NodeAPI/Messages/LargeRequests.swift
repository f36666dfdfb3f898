/// The sizes of requests that are committed in parts, in entries: see ``WakuHandler/isLarge(_:)``.
package enum LargeRequests {
    /// A request with more entries takes turns with others. A contact rarely has more devices.
    package static let smallCount = 8
    /// The number of entries that are decided in one transaction: 64 take 5 to 10 ms.
    package static let partCount = 64
}

/// A message of a storage server, its time of arrival in Unix milliseconds, and the server's key. The time in the message depends on the sender's clock.
package typealias ReportedMessage = (message: NotifyMessage, receivedAt: Int64, server: [UInt8])

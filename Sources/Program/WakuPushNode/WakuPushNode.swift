// The one module that a protocol of another package imports: what the declarations of `NodeAPI` name, and the program that runs it.
@_exported public import Core
@_exported public import Delivery
@_exported public import NodeAPI
@_exported public import NodeMetrics
@_exported public import RateLimits
@_exported public import Storage
@_exported public import Waku
@_exported public import WakuCrypto
@_exported public import WakuPushCommands
